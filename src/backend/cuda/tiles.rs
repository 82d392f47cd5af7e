//! The constants that host and device code share, read from `kernels/tiles.h` at compile time. Depends on nothing.

const TEXT: &[u8] = include_bytes!("../../../kernels/tiles.h");

/// The value of `#define NAME integer`.
///
/// # Panics
/// If there is no such line, which in a constant fails the build.
pub const fn tile(name: &str) -> u32 {
    match find(name) {
        Some(value) => value,
        None => panic!("a constant is missing in kernels/tiles.h"),
    }
}

/// The value of `NAME_SUFFIX`, if the file has it.
const fn find(name: &str) -> Option<u32> {
    const DEFINE: &[u8] = b"#define ";
    let (name, mut line) = (name.as_bytes(), 0);
    while line < TEXT.len() {
        let start = line + DEFINE.len();
        if is_at(DEFINE, line) && is_at(name, start) && is_at(b" ", start + name.len()) {
            return Some(number(start + name.len() + 1));
        }
        while line < TEXT.len() && TEXT[line] != b'\n' {
            line += 1;
        }
        line += 1;
    }
    None
}

const fn is_at(part: &[u8], at: usize) -> bool {
    if at + part.len() > TEXT.len() {
        return false;
    }
    let mut i = 0;
    while i < part.len() {
        if TEXT[at + i] != part[i] {
            return false;
        }
        i += 1;
    }
    true
}

const fn number(mut at: usize) -> u32 {
    let mut value = 0;
    while at < TEXT.len() && TEXT[at].is_ascii_digit() {
        value = value * 10 + (TEXT[at] - b'0') as u32;
        at += 1;
    }
    value
}
