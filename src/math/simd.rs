//! Plain loops compiled once for every vector unit and chosen at run time. Depends on nothing in this crate.

/// Moving this into a closure makes the closure callable only once.
pub(crate) struct Once;

/// Evaluates an expression compiled for the widest vector unit that the processor has. Functions that it calls take
/// part only if they are `#[inline(always)]`.
///
/// The closure is made callable only once because the compiler puts a call that it need not inline, and so does not
/// vectorise, in front of every other kind.
macro_rules! vectorised {
    ($work:expr) => {{
        let once = crate::math::simd::Once;
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let crate::math::simd::Once = { once };
                $work
            },
        )
    }};
}

pub(crate) use vectorised;
