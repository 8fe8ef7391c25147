//! A compilation: the library's context with the calls on it, safe to make.
//!
//! Handles are made by a context's own methods and stay inside this crate, so they are always handles of
//! that context, which outlives them. What a call refuses it notes in the context and answers with null, which
//! later calls pass on: the first refusal is read once, at the end.

use crate::ffi::{
    Api, Binary, Blk, Compare, DYNAMIC_LIBRARY, Field, Func, FuncKind, Location,
    OPTIMIZATION_LEVEL, Param, Place, RawContext, RawResult, Ty, Unary, Val,
};
use crate::library::Loaded;
use crate::probe::{LONG, Probed, in_child};
use loopwright_files::ScratchFolder;
use loopwright_native::SharedLibrary;
use std::ffi::{CStr, CString, c_int};
use std::path::Path;
use std::sync::Arc;

/// A name as C has it. NULs, which no name of ours has, end it.
pub(crate) fn c_string(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).unwrap_or_default()
}

fn count(length: usize) -> c_int {
    c_int::try_from(length).unwrap_or(c_int::MAX)
}

/// A context. It is released when this is dropped, and everything made with it with it.
pub(crate) struct Context {
    loaded: Arc<Loaded>,
    raw: RawContext,
}

/// Compiled code, unloaded when this is dropped.
pub(crate) struct Compiled(SharedLibrary);

impl Compiled {
    /// The address of an exported function.
    pub(crate) fn address(&self, symbol: &str) -> Option<*mut std::ffi::c_void> {
        // SAFETY: the symbol is only taken for an address.
        let found = unsafe { self.0.get::<*mut std::ffi::c_void>(symbol.as_bytes()) };
        found.ok().map(|address| *address)
    }
}

/// Code that was compiled in this process, released when this is dropped.
pub(crate) struct CompiledHere {
    loaded: Arc<Loaded>,
    raw: RawResult,
}

impl Drop for CompiledHere {
    fn drop(&mut self) {
        // SAFETY: the result is this value's own, and nobody runs its code any more.
        unsafe { (self.loaded.api.result_release)(self.raw) }
    }
}

impl CompiledHere {
    /// The address of an exported function.
    pub(crate) fn address(&self, symbol: &str) -> Option<*mut std::ffi::c_void> {
        let symbol = c_string(symbol);
        // SAFETY: the result is alive, and the name ends with a NUL.
        let address = unsafe { (self.loaded.api.result_get_code)(self.raw, symbol.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is this value's own.
        unsafe { (self.api().context_release)(self.raw) }
    }
}

/// Calls the library. Every handle comes from this context's own methods, and pointers to arguments are good for
/// the call, which copies what it keeps.
macro_rules! call {
    ($self:ident.$function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: as the macro's documentation says.
        unsafe { ($self.api().$function)($($argument),*) }
    }};
}

impl Context {
    pub(crate) fn new(loaded: &Arc<Loaded>) -> Option<Context> {
        // SAFETY: the function needs nothing.
        let raw = unsafe { (loaded.api.context_acquire)() };
        (!raw.0.is_null()).then(|| {
            let context = Context {
                loaded: loaded.clone(),
                raw,
            };
            // Errors are values here; and blocks that nothing reaches, as after a `return`, are harmless.
            call!(context.context_set_bool_print_errors_to_stderr(raw, 0));
            call!(context.context_set_bool_allow_unreachable_blocks(raw, 1));
            context
        })
    }

    fn api(&self) -> &Api {
        &self.loaded.api
    }

    pub(crate) fn optimise(&self, level: c_int) {
        call!(self.context_set_int_option(self.raw, OPTIMIZATION_LEVEL, level));
    }

    pub(crate) fn option(&self, option: &str) {
        let option = c_string(option);
        call!(self.context_add_command_line_option(self.raw, option.as_ptr()));
    }

    /// Compiles in a process of its own, which GCC may end, and loads what it made. `Err` is what the library says, or how it ended
    /// that process.
    ///
    /// Fails where `is_asked` says that it is to end.
    pub(crate) fn compile(&self, is_asked: fn() -> bool) -> Result<Compiled, String> {
        // What was refused while the code was described makes compiling pointless.
        if let Some(error) = self.error() {
            return Err(error);
        }
        // The name is in a directory that only this user can write to.
        let folder = ScratchFolder::new("gccjit").map_err(|error| error.to_string())?;
        let path = folder.path().join("module.so");
        let name = c_path(&path);
        // GCC has settled on a folder for temporary files when it was tried in this process; where it is ended they stay there.
        let compiled = in_child(LONG, None, is_asked, || {
            call!(self.context_compile_to_file(self.raw, DYNAMIC_LIBRARY, name.as_ptr()));
            self.error().map_or(Ok(()), Err)
        });
        if let Probed::Fails(reason) = compiled {
            return Err(reason);
        }
        // SAFETY: the code is ours, and has no initialisers.
        let library = unsafe { SharedLibrary::open(&path) };
        library.map(Compiled).map_err(|error| error.to_string())
    }

    /// Compiles and loads in this process, which GCC ends where it cannot go on.
    pub(crate) fn compile_here(&self) -> Result<CompiledHere, String> {
        // What was refused while the code was described makes compiling pointless.
        if let Some(error) = self.error() {
            return Err(error);
        }
        let raw = call!(self.context_compile(self.raw));
        if raw.0.is_null() {
            return Err(self
                .error()
                .unwrap_or_else(|| "it gave no reason".to_owned()));
        }
        Ok(CompiledHere {
            loaded: self.loaded.clone(),
            raw,
        })
    }

    /// The first thing that went wrong.
    pub(crate) fn error(&self) -> Option<String> {
        let text = call!(self.context_get_first_error(self.raw));
        if text.is_null() {
            return None;
        }
        // SAFETY: the text is the context's and ends with a NUL.
        let text = unsafe { CStr::from_ptr(text) };
        Some(text.to_string_lossy().into_owned())
    }

    /// Writes everything there is, in a language like C, to a file.
    pub(crate) fn dump(&self, path: &Path) {
        let path = c_path(path);
        call!(self.context_dump_to_file(self.raw, path.as_ptr(), 0));
    }

    // Types.

    pub(crate) fn basic(&self, which: c_int) -> Ty {
        call!(self.context_get_type(self.raw, which))
    }

    pub(crate) fn int(&self, bytes: usize, signed: bool) -> Ty {
        call!(self.context_get_int_type(self.raw, count(bytes), c_int::from(signed)))
    }

    pub(crate) fn pointer(&self, ty: Ty) -> Ty {
        call!(self.type_get_pointer(ty))
    }

    pub(crate) fn volatile(&self, ty: Ty) -> Ty {
        call!(self.type_get_volatile(ty))
    }

    pub(crate) fn aligned(&self, ty: Ty, bytes: usize) -> Ty {
        call!(self.type_get_aligned(ty, bytes))
    }

    pub(crate) fn vector_of(&self, ty: Ty, lanes: u32) -> Ty {
        call!(self.type_get_vector(ty, lanes as usize))
    }

    pub(crate) fn array_of(&self, ty: Ty, elements: c_int) -> Ty {
        call!(self.context_new_array_type(self.raw, Location::NONE, ty, elements))
    }

    pub(crate) fn field(&self, ty: Ty, name: &str) -> Field {
        let name = c_string(name);
        call!(self.context_new_field(self.raw, Location::NONE, ty, name.as_ptr()))
    }

    pub(crate) fn structure(&self, name: &str, fields: &[Field]) -> Ty {
        let name = c_string(name);
        let made = call!(self.context_new_struct_type(
            self.raw,
            Location::NONE,
            name.as_ptr(),
            count(fields.len()),
            fields.as_ptr(),
        ));
        call!(self.struct_as_type(made))
    }

    pub(crate) fn function_pointer(&self, result: Ty, params: &[Ty]) -> Ty {
        call!(self.context_new_function_ptr_type(
            self.raw,
            Location::NONE,
            result,
            count(params.len()),
            params.as_ptr(),
            0,
        ))
    }

    // Functions.

    /// A function and the places of its parameters.
    pub(crate) fn function(
        &self,
        kind: FuncKind,
        result: Ty,
        name: &str,
        params: &[(Ty, &str)],
    ) -> (Func, Vec<Place>) {
        let made: Vec<Param> = params
            .iter()
            .map(|(ty, name)| {
                let name = c_string(name);
                call!(self.context_new_param(self.raw, Location::NONE, *ty, name.as_ptr()))
            })
            .collect();
        let name = c_string(name);
        let function = call!(self.context_new_function(
            self.raw,
            Location::NONE,
            kind as c_int,
            result,
            name.as_ptr(),
            count(made.len()),
            made.as_ptr(),
            0,
        ));
        let places = made
            .iter()
            .map(|&param| call!(self.param_as_lvalue(param)))
            .collect();
        (function, places)
    }

    pub(crate) fn builtin(&self, name: &str) -> Func {
        let name = c_string(name);
        call!(self.context_get_builtin_function(self.raw, name.as_ptr()))
    }

    pub(crate) fn function_address(&self, function: Func) -> Val {
        call!(self.function_get_address(function, Location::NONE))
    }

    pub(crate) fn local(&self, function: Func, ty: Ty, name: &str) -> Place {
        let name = c_string(name);
        call!(self.function_new_local(function, Location::NONE, ty, name.as_ptr()))
    }

    pub(crate) fn block(&self, function: Func, name: &str) -> Blk {
        let name = c_string(name);
        call!(self.function_new_block(function, name.as_ptr()))
    }

    // Values.

    #[cfg(not(any(windows, target_pointer_width = "32")))]
    pub(crate) fn integer(&self, ty: Ty, value: i64) -> Val {
        call!(self.context_new_rvalue_from_long(self.raw, ty, value))
    }

    /// Where `long` has 32 bits, larger numbers are put together.
    #[cfg(any(windows, target_pointer_width = "32"))]
    pub(crate) fn integer(&self, ty: Ty, value: i64) -> Val {
        const LOW_BITS: i64 = 24;
        if let Ok(value) = std::ffi::c_long::try_from(value) {
            return call!(self.context_new_rvalue_from_long(self.raw, ty, value));
        }
        let factor = self.integer(ty, 1 << LOW_BITS);
        let high = self.integer(ty, value >> LOW_BITS);
        let low = self.integer(ty, value & ((1 << LOW_BITS) - 1));
        let product = self.binary(Binary::Mul, ty, high, factor);
        self.binary(Binary::Add, ty, product, low)
    }

    pub(crate) fn real(&self, ty: Ty, value: f64) -> Val {
        call!(self.context_new_rvalue_from_double(self.raw, ty, value))
    }

    pub(crate) fn lanes(&self, ty: Ty, values: &[Val]) -> Val {
        call!(self.context_new_rvalue_from_vector(
            self.raw,
            Location::NONE,
            ty,
            values.len(),
            values.as_ptr()
        ))
    }

    pub(crate) fn binary(&self, op: Binary, ty: Ty, a: Val, b: Val) -> Val {
        call!(self.context_new_binary_op(self.raw, Location::NONE, op as c_int, ty, a, b))
    }

    pub(crate) fn unary(&self, op: Unary, ty: Ty, a: Val) -> Val {
        call!(self.context_new_unary_op(self.raw, Location::NONE, op as c_int, ty, a))
    }

    /// A comparison of scalars; of the type `bool`.
    pub(crate) fn compare(&self, op: Compare, a: Val, b: Val) -> Val {
        call!(self.context_new_comparison(self.raw, Location::NONE, op as c_int, a, b))
    }

    pub(crate) fn cast(&self, value: Val, ty: Ty) -> Val {
        call!(self.context_new_cast(self.raw, Location::NONE, value, ty))
    }

    /// The same bits as another type.
    pub(crate) fn bitcast(&self, value: Val, ty: Ty) -> Val {
        call!(self.context_new_bitcast(self.raw, Location::NONE, value, ty))
    }

    pub(crate) fn call(&self, function: Func, arguments: &[Val]) -> Val {
        call!(self.context_new_call(
            self.raw,
            Location::NONE,
            function,
            count(arguments.len()),
            arguments.as_ptr()
        ))
    }

    pub(crate) fn call_pointer(&self, pointer: Val, arguments: &[Val]) -> Val {
        call!(self.context_new_call_through_ptr(
            self.raw,
            Location::NONE,
            pointer,
            count(arguments.len()),
            arguments.as_ptr()
        ))
    }

    /// Element `index` of an array, or of what a pointer points at.
    pub(crate) fn element(&self, base: Val, index: Val) -> Place {
        call!(self.context_new_array_access(self.raw, Location::NONE, base, index))
    }

    pub(crate) fn value(&self, place: Place) -> Val {
        call!(self.lvalue_as_rvalue(place))
    }

    pub(crate) fn address(&self, place: Place) -> Val {
        call!(self.lvalue_get_address(place, Location::NONE))
    }

    pub(crate) fn align(&self, place: Place, bytes: u32) {
        call!(self.lvalue_set_alignment(place, bytes));
    }

    pub(crate) fn member(&self, place: Place, field: Field) -> Place {
        call!(self.lvalue_access_field(place, Location::NONE, field))
    }

    pub(crate) fn pointee(&self, pointer: Val) -> Place {
        call!(self.rvalue_dereference(pointer, Location::NONE))
    }

    pub(crate) fn pointee_member(&self, pointer: Val, field: Field) -> Place {
        call!(self.rvalue_dereference_field(pointer, Location::NONE, field))
    }

    // Statements.

    pub(crate) fn assign(&self, block: Blk, place: Place, value: Val) {
        call!(self.block_add_assignment(block, Location::NONE, place, value));
    }

    pub(crate) fn evaluate(&self, block: Blk, value: Val) {
        call!(self.block_add_eval(block, Location::NONE, value));
    }

    /// Instructions with operands: `%0` is the output, `%1` and so on the inputs, each with the constraint that says
    /// which registers will do.
    pub(crate) fn assembly(
        &self,
        block: Blk,
        instructions: &str,
        (constraint, output): (&str, Place),
        inputs: &[(&str, Val)],
        clobbers: &[&str],
    ) {
        let text = c_string(instructions);
        let asm = call!(self.block_add_extended_asm(block, Location::NONE, text.as_ptr()));
        let nameless = std::ptr::null();
        let constraint = c_string(constraint);
        call!(self.extended_asm_add_output_operand(asm, nameless, constraint.as_ptr(), output));
        for (constraint, value) in inputs {
            let constraint = c_string(constraint);
            call!(self.extended_asm_add_input_operand(asm, nameless, constraint.as_ptr(), *value));
        }
        for clobber in clobbers {
            let clobber = c_string(clobber);
            call!(self.extended_asm_add_clobber(asm, clobber.as_ptr()));
        }
    }

    pub(crate) fn branch(&self, block: Blk, condition: Val, then: Blk, otherwise: Blk) {
        call!(self.block_end_with_conditional(block, Location::NONE, condition, then, otherwise));
    }

    pub(crate) fn jump(&self, block: Blk, target: Blk) {
        call!(self.block_end_with_jump(block, Location::NONE, target));
    }

    pub(crate) fn give(&self, block: Blk, value: Option<Val>) {
        match value {
            Some(value) => call!(self.block_end_with_return(block, Location::NONE, value)),
            None => call!(self.block_end_with_void_return(block, Location::NONE)),
        }
    }
}
