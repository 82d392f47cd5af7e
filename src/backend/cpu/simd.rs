//! Plain loops compiled once for every vector unit and chosen at run time.

/// Moving this into a closure makes the closure callable only once.
pub(super) struct Once;

/// Evaluates an expression compiled for the widest vector unit that the processor has. Functions that it calls take
/// part only if they are `#[inline(always)]`.
///
/// The closure is made callable only once because the compiler puts a call that it need not inline, and so does not
/// vectorise, in front of every other kind.
macro_rules! vectorised {
    ($work:expr) => {{
        let once = crate::backend::cpu::simd::Once;
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let crate::backend::cpu::simd::Once = { once };
                $work
            },
        )
    }};
}

pub(super) use vectorised;
