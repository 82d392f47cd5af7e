//! NVIDIA's run-time compiler, loaded from its shared library. The only unsafe code of the tool.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use anyhow::{Context, Result, bail};
use libloading::Library;

type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Fetch = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
type ErrorText = unsafe extern "C" fn(c_int) -> *const c_char;

/// The opened library and its functions, which stay valid as long as it is loaded.
pub struct Nvrtc {
    create: Create,
    compile: Compile,
    log_size: Size,
    log: Fetch,
    cubin_size: Size,
    cubin: Fetch,
    ptx_size: Size,
    ptx: Fetch,
    destroy: Destroy,
    version: Version,
    error_text: ErrorText,
    _library: Library,
}

/// A compiled program.
pub struct Compiled {
    /// Cubin, or PTX with a zero byte at its end.
    pub image: Vec<u8>,
    /// Messages of the compiler.
    pub log: String,
}

impl Nvrtc {
    /// Opens the library `path`.
    ///
    /// # Errors
    /// If it cannot be loaded or lacks a function.
    pub fn open(path: &Path) -> Result<Self> {
        // SAFETY: running the initialisers of a library is as safe as the library; the developer chose this one, or it
        // came from the pinned package.
        let library = unsafe { Library::new(path) }?;
        // SAFETY: every type above is copied from nvrtc.h, whose C interface has been the same since CUDA 11.1.
        // The pointers outlive the symbols that they are copied from, but not the library: it lies in the same struct,
        // whose fields are private and which hands no pointer out.
        unsafe {
            Ok(Self {
                create: *library.get(c"nvrtcCreateProgram")?,
                compile: *library.get(c"nvrtcCompileProgram")?,
                log_size: *library.get(c"nvrtcGetProgramLogSize")?,
                log: *library.get(c"nvrtcGetProgramLog")?,
                cubin_size: *library.get(c"nvrtcGetCUBINSize")?,
                cubin: *library.get(c"nvrtcGetCUBIN")?,
                ptx_size: *library.get(c"nvrtcGetPTXSize")?,
                ptx: *library.get(c"nvrtcGetPTX")?,
                destroy: *library.get(c"nvrtcDestroyProgram")?,
                version: *library.get(c"nvrtcVersion")?,
                error_text: *library.get(c"nvrtcGetErrorString")?,
                _library: library,
            })
        }
    }

    /// Major and minor version.
    ///
    /// # Errors
    /// If the library does not tell.
    pub fn version(&self) -> Result<(i32, i32)> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are valid for writes during the call.
        self.check(unsafe { (self.version)(&raw mut major, &raw mut minor) })?;
        Ok((major, minor))
    }

    /// Compiles `text`, called `name` in messages, to PTX or to a cubin. The library compiles one
    /// program at a time, however many threads ask.
    ///
    /// # Errors
    /// If it does not compile; the message is the compiler's.
    pub fn compile(&self, name: &str, text: &str, options: &[String], to_ptx: bool) -> Result<Compiled> {
        let program = OpenProgram::new(self, name, text)?;
        let options: Vec<CString> =
            options.iter().map(|option| CString::new(option.as_str())).collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len())?;
        // SAFETY: `program` is open, and `pointers` holds `count` strings with a zero at their end, alive until the end
        // of this function. No other thread knows this program.
        let code = unsafe { (self.compile)(program.handle, count, pointers.as_ptr()) };
        let mut log = program.fetch(self.log_size, self.log)?;
        log.retain(|&byte| byte != 0);
        let log = String::from_utf8_lossy(&log).into_owned();
        if code != 0 {
            bail!("{name} does not compile\n{log}");
        }
        let (size, fetch) = if to_ptx { (self.ptx_size, self.ptx) } else { (self.cubin_size, self.cubin) };
        Ok(Compiled { image: program.fetch(size, fetch)?, log })
    }

    fn check(&self, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the function takes any number and returns a constant string of the library, which is loaded.
        let text = unsafe { CStr::from_ptr((self.error_text)(code)) };
        bail!("NVRTC: {}", text.to_string_lossy())
    }
}

/// A program that is destroyed at the end of its scope.
struct OpenProgram<'a> {
    nvrtc: &'a Nvrtc,
    handle: Program,
}

impl<'a> OpenProgram<'a> {
    fn new(nvrtc: &'a Nvrtc, name: &str, text: &str) -> Result<Self> {
        let (name, text) = (CString::new(name)?, CString::new(text).context("a zero byte in the source")?);
        let mut handle = ptr::null_mut();
        // SAFETY: the strings end with a zero and live until the call returns (the library copies them); no headers are
        // passed, for which the header of the library allows null pointers.
        let code = unsafe {
            (nvrtc.create)(&raw mut handle, text.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null())
        };
        nvrtc.check(code)?;
        Ok(Self { nvrtc, handle })
    }

    fn fetch(&self, size: Size, fetch: Fetch) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: the program is open and the pointer is valid for a write.
        self.nvrtc.check(unsafe { size(self.handle, &raw mut bytes) })?;
        let mut buffer = vec![0_u8; bytes];
        // SAFETY: the function writes as many bytes as its companion just named, and the buffer has that size.
        self.nvrtc.check(unsafe { fetch(self.handle, buffer.as_mut_ptr().cast()) })?;
        Ok(buffer)
    }
}

impl Drop for OpenProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle came from `create` and is destroyed once. Its result only says whether it was a program.
        let _ = unsafe { (self.nvrtc.destroy)(&raw mut self.handle) };
    }
}
