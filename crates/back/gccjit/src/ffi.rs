//! libgccjit's C interface: handles, numbers and function pointers, found in the library at run time.
//!
//! Written from the interface's documentation, which also says which release of GCC has which function;
//! everything here is in GCC 12's.

use libloading::Library;
use std::ffi::{c_char, c_int, c_long, c_void};

/// Pointers that mean something to the library alone. Null where a call failed.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub(crate) struct $name(pub(crate) *mut c_void);
    )*};
}

handles! {
    /// `gcc_jit_context`
    RawContext;
    /// `gcc_jit_result`
    RawResult;
    /// `gcc_jit_type`
    Ty;
    /// `gcc_jit_struct`
    Struct;
    /// `gcc_jit_field`
    Field;
    /// `gcc_jit_function`
    Func;
    /// `gcc_jit_param`
    Param;
    /// `gcc_jit_block`
    Blk;
    /// `gcc_jit_lvalue`
    Place;
    /// `gcc_jit_rvalue`
    Val;
    /// `gcc_jit_location`
    Location;
    /// `gcc_jit_extended_asm`
    Asm;
}

impl Location {
    /// No place in a source.
    pub(crate) const NONE: Location = Location(std::ptr::null_mut());
}

/// `enum gcc_jit_types`, those that are used.
pub(crate) mod types {
    use super::c_int;
    pub(crate) const VOID: c_int = 0;
    pub(crate) const VOID_PTR: c_int = 1;
    pub(crate) const BOOL: c_int = 2;
    pub(crate) const INT: c_int = 8;
    pub(crate) const UNSIGNED_LONG_LONG: c_int = 13;
    pub(crate) const FLOAT: c_int = 14;
    pub(crate) const DOUBLE: c_int = 15;
}

/// `enum gcc_jit_function_kind`, those that are used. Functions that must always be inlined are not: GCC 12 gives up on those it
/// would rather not inline.
#[repr(i32)]
#[derive(Clone, Copy)]
pub(crate) enum FuncKind {
    Exported = 0,
    Internal = 1,
    Imported = 2,
}

/// `enum gcc_jit_binary_op`, those that are used.
#[repr(i32)]
#[derive(Clone, Copy)]
pub(crate) enum Binary {
    Add = 0,
    Sub = 1,
    Mul = 2,
    Div = 3,
    Rem = 4,
    And = 5,
    Xor = 6,
    Or = 7,
    LogicalAnd = 8,
    LogicalOr = 9,
    Shl = 10,
    Shr = 11,
}

/// `enum gcc_jit_unary_op`, those that are used.
#[repr(i32)]
#[derive(Clone, Copy)]
pub(crate) enum Unary {
    Neg = 0,
    Not = 1,
}

/// `enum gcc_jit_comparison`.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compare {
    Eq = 0,
    Ne = 1,
    Lt = 2,
    Le = 3,
    Gt = 4,
    Ge = 5,
}

/// `GCC_JIT_INT_OPTION_OPTIMIZATION_LEVEL`.
pub(crate) const OPTIMIZATION_LEVEL: c_int = 0;

/// `GCC_JIT_OUTPUT_KIND_DYNAMIC_LIBRARY`.
pub(crate) const DYNAMIC_LIBRARY: c_int = 2;

/// What the library lacks.
#[derive(Debug)]
pub(crate) struct MissingSymbol(pub(crate) &'static str);

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of a loaded library, named without their common `gcc_jit_`.
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Api {
            /// Finds all functions in a library, which stays loaded for good: it registers a function that runs when the
            /// process ends, and a thread that unloads the library at that moment takes away the code that is about to run.
            pub(crate) fn find(library: Library) -> Result<Api, MissingSymbol> {
                let library: &'static Library = Box::leak(Box::new(library));
                Ok(Api {
                    $($name: {
                        let symbol = concat!("gcc_jit_", stringify!($name));
                        // SAFETY: the documented function of that name has this signature.
                        let found = unsafe { library.get(symbol.as_bytes()) };
                        *found.map_err(|_| MissingSymbol(symbol))?
                    },)*
                })
            }
        }
    };
}

functions! {
    version_major() -> c_int;
    version_minor() -> c_int;
    version_patchlevel() -> c_int;

    context_acquire() -> RawContext;
    context_release(RawContext);
    context_compile(RawContext) -> RawResult;
    context_compile_to_file(RawContext, c_int, *const c_char);
    context_get_first_error(RawContext) -> *const c_char;
    context_dump_to_file(RawContext, *const c_char, c_int);
    context_set_int_option(RawContext, c_int, c_int);
    context_set_bool_allow_unreachable_blocks(RawContext, c_int);
    context_set_bool_print_errors_to_stderr(RawContext, c_int);
    context_add_command_line_option(RawContext, *const c_char);
    result_get_code(RawResult, *const c_char) -> *mut c_void;
    result_release(RawResult);

    context_get_type(RawContext, c_int) -> Ty;
    context_get_int_type(RawContext, c_int, c_int) -> Ty;
    context_new_array_type(RawContext, Location, Ty, c_int) -> Ty;
    context_new_field(RawContext, Location, Ty, *const c_char) -> Field;
    context_new_struct_type(RawContext, Location, *const c_char, c_int, *const Field) -> Struct;
    context_new_function_ptr_type(RawContext, Location, Ty, c_int, *const Ty, c_int) -> Ty;
    struct_as_type(Struct) -> Ty;
    type_get_pointer(Ty) -> Ty;
    type_get_volatile(Ty) -> Ty;
    type_get_aligned(Ty, usize) -> Ty;
    type_get_vector(Ty, usize) -> Ty;

    context_new_param(RawContext, Location, Ty, *const c_char) -> Param;
    context_new_function(RawContext, Location, c_int, Ty, *const c_char, c_int, *const Param, c_int) -> Func;
    context_get_builtin_function(RawContext, *const c_char) -> Func;
    function_get_address(Func, Location) -> Val;
    function_new_local(Func, Location, Ty, *const c_char) -> Place;
    function_new_block(Func, *const c_char) -> Blk;
    param_as_lvalue(Param) -> Place;

    context_new_rvalue_from_long(RawContext, Ty, c_long) -> Val;
    context_new_rvalue_from_double(RawContext, Ty, f64) -> Val;
    context_new_rvalue_from_vector(RawContext, Location, Ty, usize, *const Val) -> Val;
    context_new_binary_op(RawContext, Location, c_int, Ty, Val, Val) -> Val;
    context_new_unary_op(RawContext, Location, c_int, Ty, Val) -> Val;
    context_new_comparison(RawContext, Location, c_int, Val, Val) -> Val;
    context_new_cast(RawContext, Location, Val, Ty) -> Val;
    context_new_bitcast(RawContext, Location, Val, Ty) -> Val;
    context_new_call(RawContext, Location, Func, c_int, *const Val) -> Val;
    context_new_call_through_ptr(RawContext, Location, Val, c_int, *const Val) -> Val;
    context_new_array_access(RawContext, Location, Val, Val) -> Place;
    lvalue_as_rvalue(Place) -> Val;
    lvalue_get_address(Place, Location) -> Val;
    lvalue_access_field(Place, Location, Field) -> Place;
    lvalue_set_alignment(Place, u32);
    rvalue_dereference(Val, Location) -> Place;
    rvalue_dereference_field(Val, Location, Field) -> Place;

    block_add_assignment(Blk, Location, Place, Val);
    block_add_eval(Blk, Location, Val);
    block_add_extended_asm(Blk, Location, *const c_char) -> Asm;
    extended_asm_add_output_operand(Asm, *const c_char, *const c_char, Place);
    extended_asm_add_input_operand(Asm, *const c_char, *const c_char, Val);
    extended_asm_add_clobber(Asm, *const c_char);
    block_end_with_conditional(Blk, Location, Val, Blk, Blk);
    block_end_with_jump(Blk, Location, Blk);
    block_end_with_return(Blk, Location, Val);
    block_end_with_void_return(Blk, Location);
}
