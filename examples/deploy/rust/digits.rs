//! The model's C interface, and a safe type around it. `digits.h` of the build says what each function does.

use std::ffi::CStr;
use std::fmt;
use std::os::raw::{c_char, c_void};
use std::ptr;

const OK: i32 = 0;
const CLASSES: usize = 10;

#[repr(C)]
struct RawError {
    code: i32,
    text: [c_char; 252],
}

#[repr(C)]
struct Buffer {
    data: *mut c_void,
    bytes: i64,
}

#[repr(C)]
struct Context {
    _private: [u8; 0],
}

extern "C" {
    fn digits_open(context: *mut *mut Context, options: *const c_void, error: *mut RawError) -> i32;
    fn digits_run(
        context: *mut Context,
        dims: *const i64,
        inputs: *const Buffer,
        outputs: *const Buffer,
        error: *mut RawError,
    ) -> i32;
    fn digits_close(context: *mut Context);
}

/// What the model refused, in its own words.
#[derive(Debug)]
pub struct Error {
    pub code: i32,
    pub text: String,
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} (code {})", self.text, self.code)
    }
}

impl std::error::Error for Error {}

/// Call into C with a place for an error.
fn checked(call: impl FnOnce(*mut RawError) -> i32) -> Result<(), Error> {
    let mut error = RawError { code: OK, text: [0; 252] };
    let code = call(&mut error);
    if code == OK {
        return Ok(());
    }
    // SAFETY: the interface ends every text with a zero.
    let text = unsafe { CStr::from_ptr(error.text.as_ptr()) };
    Err(Error { code, text: text.to_string_lossy().into_owned() })
}

/// An open model. It may be sent to another thread; `run` takes it exclusively, as one thread at a time may use it.
pub struct Model {
    context: *mut Context,
}

// SAFETY: a context is bound to no thread, and `&mut self` keeps calls apart.
unsafe impl Send for Model {}

impl Model {
    pub fn open() -> Result<Self, Error> {
        let mut context = ptr::null_mut();
        // SAFETY: NULL for options is allowed.
        checked(|error| unsafe { digits_open(&mut context, ptr::null(), error) })?;
        Ok(Self { context })
    }

    /// `images` are `batch` × 1 × 8 × 8 numbers; the answer has ten for each.
    pub fn run(&mut self, images: &[f32], batch: usize) -> Result<Vec<f32>, Error> {
        let mut logits = vec![0.0_f32; batch * CLASSES];
        let dims = [batch as i64];
        let inputs = [Buffer { data: images.as_ptr() as *mut c_void, bytes: std::mem::size_of_val(images) as i64 }];
        let outputs = [Buffer { data: logits.as_mut_ptr().cast(), bytes: std::mem::size_of_val(&logits[..]) as i64 }];
        // SAFETY: the buffers live as long as the call, their bytes are checked by it, and inputs are only read.
        checked(|error| unsafe {
            digits_run(self.context, dims.as_ptr(), inputs.as_ptr(), outputs.as_ptr(), error)
        })?;
        Ok(logits)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, closed once.
        unsafe { digits_close(self.context) }
    }
}
