//! The rows. Columns: variant, mnemonic, map, prefix, opcode, W, encodings, lengths, tuple, form.

use super::Lengths::*;
use super::Map::*;
use super::Prefix::*;
use super::Tuple::*;
use super::W::*;
use super::{Access, Encodings, Form, Kind, Memory, Place, Spec};

// The sets of encodings: legacy, VEX, EVEX.
const L: Encodings = Encodings(1);
const V: Encodings = Encodings(2);
const E: Encodings = Encodings(4);
const LV: Encodings = Encodings(3);
const VE: Encodings = Encodings(6);
const LVE: Encodings = Encodings(7);

/// `reg = op(rm)`.
const RM: Form = Form {
    reg: Kind::Vec,
    reg_access: Access::Write,
    place: Place::Reg,
    vvvv: None,
    rm: Some(Kind::Vec),
    rm_access: Access::Read,
    memory: Memory::Plain,
    immediate: false,
    third: false,
    maskable: true,
};
/// `rm = op(reg)`.
const MR: Form = Form {
    reg_access: Access::Read,
    rm_access: Access::Write,
    ..RM
};
/// `reg = op(vvvv, rm)`.
const RVM: Form = Form {
    vvvv: Some(Kind::Vec),
    ..RM
};
/// `reg = op(vvvv, rm)`, registers only.
const RVR: Form = RVM.register();
/// `reg = op(reg, vvvv, rm)`.
const UPDATE: Form = Form {
    reg_access: Access::Update,
    ..RVM
};
/// `reg = op(vvvv, rm, third)`.
const BLEND: Form = Form { third: true, ..RVM };
const LOAD: Form = RM.memory_only();
const STORE: Form = MR.memory_only();
/// `mask = op(vvvv, rm)`.
const COMPARE: Form = Form {
    reg: Kind::Mask,
    ..RVM
};
/// `flags = op(reg, rm)`: both are read.
const FLAGS: Form = Form {
    reg_access: Access::Read,
    ..RM
}
.unmasked();
const VEC_FROM_GPR: Form = Form {
    rm: Some(Kind::Gpr),
    ..RM
}
.register()
.unmasked();
/// `reg = op(vvvv, rm)`, `rm` a general purpose register or memory.
const RV_GPR: Form = Form {
    rm: Some(Kind::Gpr),
    ..RVM
}
.unmasked();
/// The general purpose register is `rm` and is written.
const GPR_INTO: Form = Form {
    rm: Some(Kind::Gpr),
    ..MR
}
.register()
.unmasked();
/// The general purpose register is `reg`.
const GPR_FROM: Form = Form {
    reg: Kind::Gpr,
    ..RM
}
.unmasked();
const MASK_RM: Form = Form {
    reg: Kind::Mask,
    rm: Some(Kind::Mask),
    ..RM
}
.unmasked();
const MASK_STORE: Form = Form {
    reg_access: Access::Read,
    rm_access: Access::Write,
    ..MASK_RM
}
.memory_only();
const MASK_RVR: Form = Form {
    vvvv: Some(Kind::Mask),
    ..MASK_RM
}
.register();
const MASK_FLAGS: Form = Form {
    reg_access: Access::Read,
    ..MASK_RM
}
.register();
const MASK_FROM_GPR: Form = Form {
    rm: Some(Kind::Gpr),
    ..MASK_RM
}
.register();
const GPR_FROM_MASK: Form = Form {
    reg: Kind::Gpr,
    ..MASK_RM
}
.register();
const VEC_FROM_MASK: Form = Form {
    reg: Kind::Vec,
    ..MASK_RM
}
.register();
const MASK_FROM_VEC: Form = Form {
    rm: Some(Kind::Vec),
    ..MASK_RM
}
.register();
const GATHER: Form = Form {
    memory: Memory::Gathered,
    rm: None,
    ..UPDATE
};
const SCATTER: Form = Form {
    reg_access: Access::Read,
    rm_access: Access::Write,
    vvvv: None,
    ..GATHER
};
/// `rm = reg` in the lanes of `vvvv`.
const MASKED_STORE: Form = Form {
    reg_access: Access::Read,
    rm_access: Access::Write,
    ..RVM
}
.memory_only();

/// `reg = shift(rm)` by a constant. Memory is for EVEX only.
const fn shift_imm(extension: u8) -> Form {
    Form {
        place: Place::Vvvv(extension),
        ..RM
    }
    .immediate()
}

impl Form {
    const fn immediate(self) -> Form {
        Form {
            immediate: true,
            ..self
        }
    }

    const fn unmasked(self) -> Form {
        Form {
            maskable: false,
            ..self
        }
    }

    const fn masked(self) -> Form {
        Form {
            maskable: true,
            ..self
        }
    }

    const fn register(self) -> Form {
        Form {
            memory: Memory::None,
            ..self
        }
    }

    const fn memory(self) -> Form {
        Form {
            memory: Memory::Plain,
            ..self
        }
    }

    const fn memory_only(self) -> Form {
        Form { rm: None, ..self }
    }
}

/// The enum and the table, from the same rows.
macro_rules! rows {
    ($($variant:ident $name:literal, $map:ident, $prefix:ident, $opcode:literal, $w:ident, $encodings:ident, $lengths:ident, $tuple:expr, $form:expr;)*) => {
        /// A vector or mask instruction: a row of the table. The name is the mnemonic without the leading `v`, with a
        /// word behind it where a mnemonic has several rows.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u16)]
        pub enum Vop {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl Vop {
            /// All rows.
            pub const ALL: &[Vop] = &[$(Vop::$variant,)*];

            /// The row.
            #[inline]
            pub fn spec(self) -> &'static Spec {
                &TABLE[self as usize]
            }
        }

        static TABLE: [Spec; Vop::ALL.len()] = [$(
            Spec {
                name: $name,
                map: $map,
                prefix: $prefix,
                opcode: $opcode,
                w: $w,
                encodings: $encodings,
                lengths: $lengths,
                tuple: $tuple,
                form: $form,
            },
        )*];
    };
}

rows! {
    // Moves.
    Movups          "movups", M0F, NP, 0x10, W0, LVE, Any, FullMem, RM;
    MovupsStore     "movups", M0F, NP, 0x11, W0, LVE, Any, FullMem, MR;
    Movaps          "movaps", M0F, NP, 0x28, W0, LVE, Any, FullMem, RM;
    MovapsStore     "movaps", M0F, NP, 0x29, W0, LVE, Any, FullMem, MR;
    Movupd          "movupd", M0F, P66, 0x10, W01, LVE, Any, FullMem, RM;
    MovupdStore     "movupd", M0F, P66, 0x11, W01, LVE, Any, FullMem, MR;
    Movss           "movss", M0F, PF3, 0x10, W0, LVE, Scalar, Fixed(4), RVR;
    MovssLoad       "movss", M0F, PF3, 0x10, W0, LVE, Scalar, Fixed(4), LOAD;
    MovssStore      "movss", M0F, PF3, 0x11, W0, LVE, Scalar, Fixed(4), STORE;
    Movsd           "movsd", M0F, PF2, 0x10, W01, LVE, Scalar, Fixed(8), RVR;
    MovsdLoad       "movsd", M0F, PF2, 0x10, W01, LVE, Scalar, Fixed(8), LOAD;
    MovsdStore      "movsd", M0F, PF2, 0x11, W01, LVE, Scalar, Fixed(8), STORE;
    MovdToVec       "movd", M0F, P66, 0x6e, W0, LVE, Scalar, Fixed(4), VEC_FROM_GPR;
    MovqToVec       "movq", M0F, P66, 0x6e, W1, LVE, Scalar, Fixed(8), VEC_FROM_GPR;
    MovdToGpr       "movd", M0F, P66, 0x7e, W0, LVE, Scalar, Fixed(4), GPR_INTO;
    MovqToGpr       "movq", M0F, P66, 0x7e, W1, LVE, Scalar, Fixed(8), GPR_INTO;
    MovdLoad        "movd", M0F, P66, 0x6e, W0, LVE, Scalar, Fixed(4), LOAD.unmasked();
    MovdStore       "movd", M0F, P66, 0x7e, W0, LVE, Scalar, Fixed(4), STORE.unmasked();
    MovqLoad        "movq", M0F, PF3, 0x7e, W01, LVE, Scalar, Fixed(8), RM.unmasked();
    MovqStore       "movq", M0F, P66, 0xd6, W01, LVE, Scalar, Fixed(8), MR.unmasked();
    Movdqu          "movdqu", M0F, PF3, 0x6f, W0, LV, Any, FullMem, RM;
    MovdquStore     "movdqu", M0F, PF3, 0x7f, W0, LV, Any, FullMem, MR;
    Movdqa          "movdqa", M0F, P66, 0x6f, W0, LV, Any, FullMem, RM;
    MovdqaStore     "movdqa", M0F, P66, 0x7f, W0, LV, Any, FullMem, MR;
    Movdqu8         "movdqu8", M0F, PF2, 0x6f, W0, E, Any, FullMem, RM;
    Movdqu8Store    "movdqu8", M0F, PF2, 0x7f, W0, E, Any, FullMem, MR;
    Movdqu16        "movdqu16", M0F, PF2, 0x6f, W1, E, Any, FullMem, RM;
    Movdqu16Store   "movdqu16", M0F, PF2, 0x7f, W1, E, Any, FullMem, MR;
    Movdqu32        "movdqu32", M0F, PF3, 0x6f, W0, E, Any, FullMem, RM;
    Movdqu32Store   "movdqu32", M0F, PF3, 0x7f, W0, E, Any, FullMem, MR;
    Movdqu64        "movdqu64", M0F, PF3, 0x6f, W1, E, Any, FullMem, RM;
    Movdqu64Store   "movdqu64", M0F, PF3, 0x7f, W1, E, Any, FullMem, MR;
    Movdqa32        "movdqa32", M0F, P66, 0x6f, W0, E, Any, FullMem, RM;
    Movdqa32Store   "movdqa32", M0F, P66, 0x7f, W0, E, Any, FullMem, MR;
    Movdqa64        "movdqa64", M0F, P66, 0x6f, W1, E, Any, FullMem, RM;
    Movdqa64Store   "movdqa64", M0F, P66, 0x7f, W1, E, Any, FullMem, MR;
    Movntps         "movntps", M0F, NP, 0x2b, W0, LVE, Any, FullMem, STORE.unmasked();
    Movntdq         "movntdq", M0F, P66, 0xe7, W0, LVE, Any, FullMem, STORE.unmasked();
    Broadcastss     "broadcastss", M0F38, P66, 0x18, W0, VE, Any, Fixed(4), RM;
    Broadcastsd     "broadcastsd", M0F38, P66, 0x19, W01, VE, Wide, Fixed(8), RM;
    Pbroadcastb     "pbroadcastb", M0F38, P66, 0x78, W0, VE, Any, Fixed(1), RM;
    Pbroadcastw     "pbroadcastw", M0F38, P66, 0x79, W0, VE, Any, Fixed(2), RM;
    Pbroadcastd     "pbroadcastd", M0F38, P66, 0x58, W0, VE, Any, Fixed(4), RM;
    Pbroadcastq     "pbroadcastq", M0F38, P66, 0x59, W01, VE, Any, Fixed(8), RM;
    PbroadcastbGpr  "pbroadcastb", M0F38, P66, 0x7a, W0, E, Any, Fixed(1), VEC_FROM_GPR.masked();
    PbroadcastwGpr  "pbroadcastw", M0F38, P66, 0x7b, W0, E, Any, Fixed(2), VEC_FROM_GPR.masked();
    PbroadcastdGpr  "pbroadcastd", M0F38, P66, 0x7c, W0, E, Any, Fixed(4), VEC_FROM_GPR.masked();
    PbroadcastqGpr  "pbroadcastq", M0F38, P66, 0x7c, W1, E, Any, Fixed(8), VEC_FROM_GPR.masked();
    Broadcastf128   "broadcastf128", M0F38, P66, 0x1a, W0, V, Wide, Fixed(16), LOAD;
    Broadcasti128   "broadcasti128", M0F38, P66, 0x5a, W0, V, Wide, Fixed(16), LOAD;
    Broadcastf32x4  "broadcastf32x4", M0F38, P66, 0x1a, W0, E, Wide, Fixed(16), LOAD;
    Broadcastf64x2  "broadcastf64x2", M0F38, P66, 0x1a, W1, E, Wide, Fixed(16), LOAD;
    Broadcastf64x4  "broadcastf64x4", M0F38, P66, 0x1b, W1, E, Zmm, Fixed(32), LOAD;
    Broadcasti32x4  "broadcasti32x4", M0F38, P66, 0x5a, W0, E, Wide, Fixed(16), LOAD;
    Broadcasti64x2  "broadcasti64x2", M0F38, P66, 0x5a, W1, E, Wide, Fixed(16), LOAD;
    Broadcasti64x4  "broadcasti64x4", M0F38, P66, 0x5b, W1, E, Zmm, Fixed(32), LOAD;

    // Float arithmetic.
    Addps           "addps", M0F, NP, 0x58, W0, LVE, Any, Full(4), RVM;
    Addpd           "addpd", M0F, P66, 0x58, W01, LVE, Any, Full(8), RVM;
    Addss           "addss", M0F, PF3, 0x58, W0, LVE, Scalar, Fixed(4), RVM;
    Addsd           "addsd", M0F, PF2, 0x58, W01, LVE, Scalar, Fixed(8), RVM;
    Subps           "subps", M0F, NP, 0x5c, W0, LVE, Any, Full(4), RVM;
    Subpd           "subpd", M0F, P66, 0x5c, W01, LVE, Any, Full(8), RVM;
    Subss           "subss", M0F, PF3, 0x5c, W0, LVE, Scalar, Fixed(4), RVM;
    Subsd           "subsd", M0F, PF2, 0x5c, W01, LVE, Scalar, Fixed(8), RVM;
    Mulps           "mulps", M0F, NP, 0x59, W0, LVE, Any, Full(4), RVM;
    Mulpd           "mulpd", M0F, P66, 0x59, W01, LVE, Any, Full(8), RVM;
    Mulss           "mulss", M0F, PF3, 0x59, W0, LVE, Scalar, Fixed(4), RVM;
    Mulsd           "mulsd", M0F, PF2, 0x59, W01, LVE, Scalar, Fixed(8), RVM;
    Divps           "divps", M0F, NP, 0x5e, W0, LVE, Any, Full(4), RVM;
    Divpd           "divpd", M0F, P66, 0x5e, W01, LVE, Any, Full(8), RVM;
    Divss           "divss", M0F, PF3, 0x5e, W0, LVE, Scalar, Fixed(4), RVM;
    Divsd           "divsd", M0F, PF2, 0x5e, W01, LVE, Scalar, Fixed(8), RVM;
    Minps           "minps", M0F, NP, 0x5d, W0, LVE, Any, Full(4), RVM;
    Minpd           "minpd", M0F, P66, 0x5d, W01, LVE, Any, Full(8), RVM;
    Minss           "minss", M0F, PF3, 0x5d, W0, LVE, Scalar, Fixed(4), RVM;
    Minsd           "minsd", M0F, PF2, 0x5d, W01, LVE, Scalar, Fixed(8), RVM;
    Maxps           "maxps", M0F, NP, 0x5f, W0, LVE, Any, Full(4), RVM;
    Maxpd           "maxpd", M0F, P66, 0x5f, W01, LVE, Any, Full(8), RVM;
    Maxss           "maxss", M0F, PF3, 0x5f, W0, LVE, Scalar, Fixed(4), RVM;
    Maxsd           "maxsd", M0F, PF2, 0x5f, W01, LVE, Scalar, Fixed(8), RVM;
    Sqrtps          "sqrtps", M0F, NP, 0x51, W0, LVE, Any, Full(4), RM;
    Sqrtpd          "sqrtpd", M0F, P66, 0x51, W01, LVE, Any, Full(8), RM;
    Sqrtss          "sqrtss", M0F, PF3, 0x51, W0, LVE, Scalar, Fixed(4), RVM;
    Sqrtsd          "sqrtsd", M0F, PF2, 0x51, W01, LVE, Scalar, Fixed(8), RVM;
    Rcpps           "rcpps", M0F, NP, 0x53, W0, LV, Any, FullMem, RM;
    Rsqrtps         "rsqrtps", M0F, NP, 0x52, W0, LV, Any, FullMem, RM;
    Fmadd132ps      "fmadd132ps", M0F38, P66, 0x98, W0, VE, Any, Full(4), UPDATE;
    Fmadd132pd      "fmadd132pd", M0F38, P66, 0x98, W1, VE, Any, Full(8), UPDATE;
    Fmadd132ss      "fmadd132ss", M0F38, P66, 0x99, W0, VE, Scalar, Fixed(4), UPDATE;
    Fmadd132sd      "fmadd132sd", M0F38, P66, 0x99, W1, VE, Scalar, Fixed(8), UPDATE;
    Fmsub132ps      "fmsub132ps", M0F38, P66, 0x9a, W0, VE, Any, Full(4), UPDATE;
    Fmsub132pd      "fmsub132pd", M0F38, P66, 0x9a, W1, VE, Any, Full(8), UPDATE;
    Fmsub132ss      "fmsub132ss", M0F38, P66, 0x9b, W0, VE, Scalar, Fixed(4), UPDATE;
    Fmsub132sd      "fmsub132sd", M0F38, P66, 0x9b, W1, VE, Scalar, Fixed(8), UPDATE;
    Fnmadd132ps     "fnmadd132ps", M0F38, P66, 0x9c, W0, VE, Any, Full(4), UPDATE;
    Fnmadd132pd     "fnmadd132pd", M0F38, P66, 0x9c, W1, VE, Any, Full(8), UPDATE;
    Fnmadd132ss     "fnmadd132ss", M0F38, P66, 0x9d, W0, VE, Scalar, Fixed(4), UPDATE;
    Fnmadd132sd     "fnmadd132sd", M0F38, P66, 0x9d, W1, VE, Scalar, Fixed(8), UPDATE;
    Fnmsub132ps     "fnmsub132ps", M0F38, P66, 0x9e, W0, VE, Any, Full(4), UPDATE;
    Fnmsub132pd     "fnmsub132pd", M0F38, P66, 0x9e, W1, VE, Any, Full(8), UPDATE;
    Fnmsub132ss     "fnmsub132ss", M0F38, P66, 0x9f, W0, VE, Scalar, Fixed(4), UPDATE;
    Fnmsub132sd     "fnmsub132sd", M0F38, P66, 0x9f, W1, VE, Scalar, Fixed(8), UPDATE;
    Fmadd213ps      "fmadd213ps", M0F38, P66, 0xa8, W0, VE, Any, Full(4), UPDATE;
    Fmadd213pd      "fmadd213pd", M0F38, P66, 0xa8, W1, VE, Any, Full(8), UPDATE;
    Fmadd213ss      "fmadd213ss", M0F38, P66, 0xa9, W0, VE, Scalar, Fixed(4), UPDATE;
    Fmadd213sd      "fmadd213sd", M0F38, P66, 0xa9, W1, VE, Scalar, Fixed(8), UPDATE;
    Fmsub213ps      "fmsub213ps", M0F38, P66, 0xaa, W0, VE, Any, Full(4), UPDATE;
    Fmsub213pd      "fmsub213pd", M0F38, P66, 0xaa, W1, VE, Any, Full(8), UPDATE;
    Fmsub213ss      "fmsub213ss", M0F38, P66, 0xab, W0, VE, Scalar, Fixed(4), UPDATE;
    Fmsub213sd      "fmsub213sd", M0F38, P66, 0xab, W1, VE, Scalar, Fixed(8), UPDATE;
    Fnmadd213ps     "fnmadd213ps", M0F38, P66, 0xac, W0, VE, Any, Full(4), UPDATE;
    Fnmadd213pd     "fnmadd213pd", M0F38, P66, 0xac, W1, VE, Any, Full(8), UPDATE;
    Fnmadd213ss     "fnmadd213ss", M0F38, P66, 0xad, W0, VE, Scalar, Fixed(4), UPDATE;
    Fnmadd213sd     "fnmadd213sd", M0F38, P66, 0xad, W1, VE, Scalar, Fixed(8), UPDATE;
    Fnmsub213ps     "fnmsub213ps", M0F38, P66, 0xae, W0, VE, Any, Full(4), UPDATE;
    Fnmsub213pd     "fnmsub213pd", M0F38, P66, 0xae, W1, VE, Any, Full(8), UPDATE;
    Fnmsub213ss     "fnmsub213ss", M0F38, P66, 0xaf, W0, VE, Scalar, Fixed(4), UPDATE;
    Fnmsub213sd     "fnmsub213sd", M0F38, P66, 0xaf, W1, VE, Scalar, Fixed(8), UPDATE;
    Fmadd231ps      "fmadd231ps", M0F38, P66, 0xb8, W0, VE, Any, Full(4), UPDATE;
    Fmadd231pd      "fmadd231pd", M0F38, P66, 0xb8, W1, VE, Any, Full(8), UPDATE;
    Fmadd231ss      "fmadd231ss", M0F38, P66, 0xb9, W0, VE, Scalar, Fixed(4), UPDATE;
    Fmadd231sd      "fmadd231sd", M0F38, P66, 0xb9, W1, VE, Scalar, Fixed(8), UPDATE;
    Fmsub231ps      "fmsub231ps", M0F38, P66, 0xba, W0, VE, Any, Full(4), UPDATE;
    Fmsub231pd      "fmsub231pd", M0F38, P66, 0xba, W1, VE, Any, Full(8), UPDATE;
    Fmsub231ss      "fmsub231ss", M0F38, P66, 0xbb, W0, VE, Scalar, Fixed(4), UPDATE;
    Fmsub231sd      "fmsub231sd", M0F38, P66, 0xbb, W1, VE, Scalar, Fixed(8), UPDATE;
    Fnmadd231ps     "fnmadd231ps", M0F38, P66, 0xbc, W0, VE, Any, Full(4), UPDATE;
    Fnmadd231pd     "fnmadd231pd", M0F38, P66, 0xbc, W1, VE, Any, Full(8), UPDATE;
    Fnmadd231ss     "fnmadd231ss", M0F38, P66, 0xbd, W0, VE, Scalar, Fixed(4), UPDATE;
    Fnmadd231sd     "fnmadd231sd", M0F38, P66, 0xbd, W1, VE, Scalar, Fixed(8), UPDATE;
    Fnmsub231ps     "fnmsub231ps", M0F38, P66, 0xbe, W0, VE, Any, Full(4), UPDATE;
    Fnmsub231pd     "fnmsub231pd", M0F38, P66, 0xbe, W1, VE, Any, Full(8), UPDATE;
    Fnmsub231ss     "fnmsub231ss", M0F38, P66, 0xbf, W0, VE, Scalar, Fixed(4), UPDATE;
    Fnmsub231sd     "fnmsub231sd", M0F38, P66, 0xbf, W1, VE, Scalar, Fixed(8), UPDATE;
    Andps           "andps", M0F, NP, 0x54, W0, LVE, Any, Full(4), RVM;
    Andpd           "andpd", M0F, P66, 0x54, W01, LVE, Any, Full(8), RVM;
    Andnps          "andnps", M0F, NP, 0x55, W0, LVE, Any, Full(4), RVM;
    Andnpd          "andnpd", M0F, P66, 0x55, W01, LVE, Any, Full(8), RVM;
    Orps            "orps", M0F, NP, 0x56, W0, LVE, Any, Full(4), RVM;
    Orpd            "orpd", M0F, P66, 0x56, W01, LVE, Any, Full(8), RVM;
    Xorps           "xorps", M0F, NP, 0x57, W0, LVE, Any, Full(4), RVM;
    Xorpd           "xorpd", M0F, P66, 0x57, W01, LVE, Any, Full(8), RVM;
    Unpcklps        "unpcklps", M0F, NP, 0x14, W0, LVE, Any, Full(4), RVM;
    Unpcklpd        "unpcklpd", M0F, P66, 0x14, W01, LVE, Any, Full(8), RVM;
    Unpckhps        "unpckhps", M0F, NP, 0x15, W0, LVE, Any, Full(4), RVM;
    Unpckhpd        "unpckhpd", M0F, P66, 0x15, W01, LVE, Any, Full(8), RVM;
    Cmpps           "cmpps", M0F, NP, 0xc2, W0, LV, Any, Full(4), RVM.immediate();
    Cmppd           "cmppd", M0F, P66, 0xc2, W01, LV, Any, Full(8), RVM.immediate();
    Cmpss           "cmpss", M0F, PF3, 0xc2, W0, LV, Scalar, Fixed(4), RVM.immediate();
    Cmpsd           "cmpsd", M0F, PF2, 0xc2, W01, LV, Scalar, Fixed(8), RVM.immediate();
    CmppsMask       "cmpps", M0F, NP, 0xc2, W0, E, Any, Full(4), COMPARE.immediate();
    CmppdMask       "cmppd", M0F, P66, 0xc2, W01, E, Any, Full(8), COMPARE.immediate();
    CmpssMask       "cmpss", M0F, PF3, 0xc2, W0, E, Scalar, Fixed(4), COMPARE.immediate();
    CmpsdMask       "cmpsd", M0F, PF2, 0xc2, W01, E, Scalar, Fixed(8), COMPARE.immediate();
    Ucomiss         "ucomiss", M0F, NP, 0x2e, W0, LVE, Scalar, Fixed(4), FLAGS;
    Ucomisd         "ucomisd", M0F, P66, 0x2e, W01, LVE, Scalar, Fixed(8), FLAGS;
    Comiss          "comiss", M0F, NP, 0x2f, W0, LVE, Scalar, Fixed(4), FLAGS;
    Comisd          "comisd", M0F, P66, 0x2f, W01, LVE, Scalar, Fixed(8), FLAGS;
    Roundps         "roundps", M0F3A, P66, 0x08, W0, LV, Any, Full(4), RM.immediate();
    Roundpd         "roundpd", M0F3A, P66, 0x09, W0, LV, Any, Full(8), RM.immediate();
    Roundss         "roundss", M0F3A, P66, 0x0a, W0, LV, Scalar, Fixed(4), RVM.immediate();
    Roundsd         "roundsd", M0F3A, P66, 0x0b, W0, LV, Scalar, Fixed(8), RVM.immediate();
    Rndscaleps      "rndscaleps", M0F3A, P66, 0x08, W0, E, Any, Full(4), RM.immediate();
    Rndscalepd      "rndscalepd", M0F3A, P66, 0x09, W1, E, Any, Full(8), RM.immediate();
    Rndscaless      "rndscaless", M0F3A, P66, 0x0a, W0, E, Scalar, Fixed(4), RVM.immediate();
    Rndscalesd      "rndscalesd", M0F3A, P66, 0x0b, W1, E, Scalar, Fixed(8), RVM.immediate();
    Rcp14ps         "rcp14ps", M0F38, P66, 0x4c, W0, E, Any, Full(4), RM;
    Rcp14pd         "rcp14pd", M0F38, P66, 0x4c, W1, E, Any, Full(8), RM;
    Rcp14ss         "rcp14ss", M0F38, P66, 0x4d, W0, E, Scalar, Fixed(4), RVM;
    Rcp14sd         "rcp14sd", M0F38, P66, 0x4d, W1, E, Scalar, Fixed(8), RVM;
    Rsqrt14ps       "rsqrt14ps", M0F38, P66, 0x4e, W0, E, Any, Full(4), RM;
    Rsqrt14pd       "rsqrt14pd", M0F38, P66, 0x4e, W1, E, Any, Full(8), RM;
    Rsqrt14ss       "rsqrt14ss", M0F38, P66, 0x4f, W0, E, Scalar, Fixed(4), RVM;
    Rsqrt14sd       "rsqrt14sd", M0F38, P66, 0x4f, W1, E, Scalar, Fixed(8), RVM;
    Getexpps        "getexpps", M0F38, P66, 0x42, W0, E, Any, Full(4), RM;
    Getexppd        "getexppd", M0F38, P66, 0x42, W1, E, Any, Full(8), RM;
    Getexpss        "getexpss", M0F38, P66, 0x43, W0, E, Scalar, Fixed(4), RVM;
    Getexpsd        "getexpsd", M0F38, P66, 0x43, W1, E, Scalar, Fixed(8), RVM;
    Getmantps       "getmantps", M0F3A, P66, 0x26, W0, E, Any, Full(4), RM.immediate();
    Getmantpd       "getmantpd", M0F3A, P66, 0x26, W1, E, Any, Full(8), RM.immediate();
    Getmantss       "getmantss", M0F3A, P66, 0x27, W0, E, Scalar, Fixed(4), RVM.immediate();
    Getmantsd       "getmantsd", M0F3A, P66, 0x27, W1, E, Scalar, Fixed(8), RVM.immediate();
    Scalefps        "scalefps", M0F38, P66, 0x2c, W0, E, Any, Full(4), RVM;
    Scalefpd        "scalefpd", M0F38, P66, 0x2c, W1, E, Any, Full(8), RVM;
    Scalefss        "scalefss", M0F38, P66, 0x2d, W0, E, Scalar, Fixed(4), RVM;
    Scalefsd        "scalefsd", M0F38, P66, 0x2d, W1, E, Scalar, Fixed(8), RVM;

    // Conversions.
    Cvtdq2ps        "cvtdq2ps", M0F, NP, 0x5b, W0, LVE, Any, Full(4), RM;
    Cvtps2dq        "cvtps2dq", M0F, P66, 0x5b, W0, LVE, Any, Full(4), RM;
    Cvttps2dq       "cvttps2dq", M0F, PF3, 0x5b, W0, LVE, Any, Full(4), RM;
    Cvtps2pd        "cvtps2pd", M0F, NP, 0x5a, W0, LVE, Any, Half(4), RM;
    Cvtpd2ps        "cvtpd2ps", M0F, P66, 0x5a, W01, LVE, Any, Full(8), RM;
    Cvtdq2pd        "cvtdq2pd", M0F, PF3, 0xe6, W0, LVE, Any, Half(4), RM;
    Cvttpd2dq       "cvttpd2dq", M0F, P66, 0xe6, W01, LVE, Any, Full(8), RM;
    Cvtpd2dq        "cvtpd2dq", M0F, PF2, 0xe6, W01, LVE, Any, Full(8), RM;
    Cvtsi2ss32      "cvtsi2ss", M0F, PF3, 0x2a, W0, LVE, Scalar, Fixed(4), RV_GPR;
    Cvtusi2ss32     "cvtusi2ss", M0F, PF3, 0x7b, W0, E, Scalar, Fixed(4), RV_GPR;
    Cvtsi2ss64      "cvtsi2ss", M0F, PF3, 0x2a, W1, LVE, Scalar, Fixed(8), RV_GPR;
    Cvtusi2ss64     "cvtusi2ss", M0F, PF3, 0x7b, W1, E, Scalar, Fixed(8), RV_GPR;
    Cvttss2si32     "cvttss2si", M0F, PF3, 0x2c, W0, LVE, Scalar, Fixed(4), GPR_FROM;
    Cvtss2si32      "cvtss2si", M0F, PF3, 0x2d, W0, LVE, Scalar, Fixed(4), GPR_FROM;
    Cvttss2usi32    "cvttss2usi", M0F, PF3, 0x78, W0, E, Scalar, Fixed(4), GPR_FROM;
    Cvttss2si64     "cvttss2si", M0F, PF3, 0x2c, W1, LVE, Scalar, Fixed(4), GPR_FROM;
    Cvtss2si64      "cvtss2si", M0F, PF3, 0x2d, W1, LVE, Scalar, Fixed(4), GPR_FROM;
    Cvttss2usi64    "cvttss2usi", M0F, PF3, 0x78, W1, E, Scalar, Fixed(4), GPR_FROM;
    Cvtsi2sd32      "cvtsi2sd", M0F, PF2, 0x2a, W0, LVE, Scalar, Fixed(4), RV_GPR;
    Cvtusi2sd32     "cvtusi2sd", M0F, PF2, 0x7b, W0, E, Scalar, Fixed(4), RV_GPR;
    Cvtsi2sd64      "cvtsi2sd", M0F, PF2, 0x2a, W1, LVE, Scalar, Fixed(8), RV_GPR;
    Cvtusi2sd64     "cvtusi2sd", M0F, PF2, 0x7b, W1, E, Scalar, Fixed(8), RV_GPR;
    Cvttsd2si32     "cvttsd2si", M0F, PF2, 0x2c, W0, LVE, Scalar, Fixed(8), GPR_FROM;
    Cvtsd2si32      "cvtsd2si", M0F, PF2, 0x2d, W0, LVE, Scalar, Fixed(8), GPR_FROM;
    Cvttsd2usi32    "cvttsd2usi", M0F, PF2, 0x78, W0, E, Scalar, Fixed(8), GPR_FROM;
    Cvttsd2si64     "cvttsd2si", M0F, PF2, 0x2c, W1, LVE, Scalar, Fixed(8), GPR_FROM;
    Cvtsd2si64      "cvtsd2si", M0F, PF2, 0x2d, W1, LVE, Scalar, Fixed(8), GPR_FROM;
    Cvttsd2usi64    "cvttsd2usi", M0F, PF2, 0x78, W1, E, Scalar, Fixed(8), GPR_FROM;
    Cvtss2sd        "cvtss2sd", M0F, PF3, 0x5a, W0, LVE, Scalar, Fixed(4), RVM;
    Cvtsd2ss        "cvtsd2ss", M0F, PF2, 0x5a, W01, LVE, Scalar, Fixed(8), RVM;
    Cvtudq2ps       "cvtudq2ps", M0F, PF2, 0x7a, W0, E, Any, Full(4), RM;
    Cvtudq2pd       "cvtudq2pd", M0F, PF3, 0x7a, W0, E, Any, Half(4), RM;
    Cvttps2udq      "cvttps2udq", M0F, NP, 0x78, W0, E, Any, Full(4), RM;
    Cvttpd2udq      "cvttpd2udq", M0F, NP, 0x78, W1, E, Any, Full(8), RM;
    Cvtqq2ps        "cvtqq2ps", M0F, NP, 0x5b, W1, E, Any, Full(8), RM;
    Cvtqq2pd        "cvtqq2pd", M0F, PF3, 0xe6, W1, E, Any, Full(8), RM;
    Cvtuqq2ps       "cvtuqq2ps", M0F, PF2, 0x7a, W1, E, Any, Full(8), RM;
    Cvtuqq2pd       "cvtuqq2pd", M0F, PF3, 0x7a, W1, E, Any, Full(8), RM;
    Cvttps2qq       "cvttps2qq", M0F, P66, 0x7a, W0, E, Any, Half(4), RM;
    Cvttps2uqq      "cvttps2uqq", M0F, P66, 0x78, W0, E, Any, Half(4), RM;
    Cvttpd2qq       "cvttpd2qq", M0F, P66, 0x7a, W1, E, Any, Full(8), RM;
    Cvttpd2uqq      "cvttpd2uqq", M0F, P66, 0x78, W1, E, Any, Full(8), RM;
    Cvtph2ps        "cvtph2ps", M0F38, P66, 0x13, W0, VE, Any, HalfMem, RM;
    Cvtps2ph        "cvtps2ph", M0F3A, P66, 0x1d, W0, VE, Any, HalfMem, MR.immediate();
    Cvtneps2bf16    "cvtneps2bf16", M0F38, PF3, 0x72, W0, E, Any, Full(4), RM;
    Dpbf16ps        "dpbf16ps", M0F38, PF3, 0x52, W0, E, Any, Full(4), UPDATE;
    Pdpbusd         "pdpbusd", M0F38, P66, 0x50, W0, VE, Any, Full(4), UPDATE;
    Pdpwssd         "pdpwssd", M0F38, P66, 0x52, W0, VE, Any, Full(4), UPDATE;

    // Integer arithmetic.
    Paddb           "paddb", M0F, P66, 0xfc, W0, LVE, Any, FullMem, RVM;
    Paddw           "paddw", M0F, P66, 0xfd, W0, LVE, Any, FullMem, RVM;
    Paddd           "paddd", M0F, P66, 0xfe, W0, LVE, Any, Full(4), RVM;
    Paddq           "paddq", M0F, P66, 0xd4, W01, LVE, Any, Full(8), RVM;
    Psubb           "psubb", M0F, P66, 0xf8, W0, LVE, Any, FullMem, RVM;
    Psubw           "psubw", M0F, P66, 0xf9, W0, LVE, Any, FullMem, RVM;
    Psubd           "psubd", M0F, P66, 0xfa, W0, LVE, Any, Full(4), RVM;
    Psubq           "psubq", M0F, P66, 0xfb, W01, LVE, Any, Full(8), RVM;
    Paddsb          "paddsb", M0F, P66, 0xec, W0, LVE, Any, FullMem, RVM;
    Paddsw          "paddsw", M0F, P66, 0xed, W0, LVE, Any, FullMem, RVM;
    Paddusb         "paddusb", M0F, P66, 0xdc, W0, LVE, Any, FullMem, RVM;
    Paddusw         "paddusw", M0F, P66, 0xdd, W0, LVE, Any, FullMem, RVM;
    Psubsb          "psubsb", M0F, P66, 0xe8, W0, LVE, Any, FullMem, RVM;
    Psubsw          "psubsw", M0F, P66, 0xe9, W0, LVE, Any, FullMem, RVM;
    Psubusb         "psubusb", M0F, P66, 0xd8, W0, LVE, Any, FullMem, RVM;
    Psubusw         "psubusw", M0F, P66, 0xd9, W0, LVE, Any, FullMem, RVM;
    Pmullw          "pmullw", M0F, P66, 0xd5, W0, LVE, Any, FullMem, RVM;
    Pmulhw          "pmulhw", M0F, P66, 0xe5, W0, LVE, Any, FullMem, RVM;
    Pmulhuw         "pmulhuw", M0F, P66, 0xe4, W0, LVE, Any, FullMem, RVM;
    Pmaddwd         "pmaddwd", M0F, P66, 0xf5, W0, LVE, Any, FullMem, RVM;
    Psadbw          "psadbw", M0F, P66, 0xf6, W0, LVE, Any, FullMem, RVM.unmasked();
    Pmaddubsw       "pmaddubsw", M0F38, P66, 0x04, W0, LVE, Any, FullMem, RVM;
    Pmulld          "pmulld", M0F38, P66, 0x40, W0, LVE, Any, Full(4), RVM;
    Pmullq          "pmullq", M0F38, P66, 0x40, W1, E, Any, Full(8), RVM;
    Pmuludq         "pmuludq", M0F, P66, 0xf4, W01, LVE, Any, Full(8), RVM;
    Pmuldq          "pmuldq", M0F38, P66, 0x28, W01, LVE, Any, Full(8), RVM;
    Pminsb          "pminsb", M0F38, P66, 0x38, W0, LVE, Any, FullMem, RVM;
    Pminsw          "pminsw", M0F, P66, 0xea, W0, LVE, Any, FullMem, RVM;
    Pminsd          "pminsd", M0F38, P66, 0x39, W0, LVE, Any, Full(4), RVM;
    Pminsq          "pminsq", M0F38, P66, 0x39, W1, E, Any, Full(8), RVM;
    Pminub          "pminub", M0F, P66, 0xda, W0, LVE, Any, FullMem, RVM;
    Pminuw          "pminuw", M0F38, P66, 0x3a, W0, LVE, Any, FullMem, RVM;
    Pminud          "pminud", M0F38, P66, 0x3b, W0, LVE, Any, Full(4), RVM;
    Pminuq          "pminuq", M0F38, P66, 0x3b, W1, E, Any, Full(8), RVM;
    Pmaxsb          "pmaxsb", M0F38, P66, 0x3c, W0, LVE, Any, FullMem, RVM;
    Pmaxsw          "pmaxsw", M0F, P66, 0xee, W0, LVE, Any, FullMem, RVM;
    Pmaxsd          "pmaxsd", M0F38, P66, 0x3d, W0, LVE, Any, Full(4), RVM;
    Pmaxsq          "pmaxsq", M0F38, P66, 0x3d, W1, E, Any, Full(8), RVM;
    Pmaxub          "pmaxub", M0F, P66, 0xde, W0, LVE, Any, FullMem, RVM;
    Pmaxuw          "pmaxuw", M0F38, P66, 0x3e, W0, LVE, Any, FullMem, RVM;
    Pmaxud          "pmaxud", M0F38, P66, 0x3f, W0, LVE, Any, Full(4), RVM;
    Pmaxuq          "pmaxuq", M0F38, P66, 0x3f, W1, E, Any, Full(8), RVM;
    Pand            "pand", M0F, P66, 0xdb, W0, LV, Any, FullMem, RVM;
    Pandd           "pandd", M0F, P66, 0xdb, W0, E, Any, Full(4), RVM;
    Pandq           "pandq", M0F, P66, 0xdb, W1, E, Any, Full(8), RVM;
    Pandn           "pandn", M0F, P66, 0xdf, W0, LV, Any, FullMem, RVM;
    Pandnd          "pandnd", M0F, P66, 0xdf, W0, E, Any, Full(4), RVM;
    Pandnq          "pandnq", M0F, P66, 0xdf, W1, E, Any, Full(8), RVM;
    Por             "por", M0F, P66, 0xeb, W0, LV, Any, FullMem, RVM;
    Pord            "pord", M0F, P66, 0xeb, W0, E, Any, Full(4), RVM;
    Porq            "porq", M0F, P66, 0xeb, W1, E, Any, Full(8), RVM;
    Pxor            "pxor", M0F, P66, 0xef, W0, LV, Any, FullMem, RVM;
    Pxord           "pxord", M0F, P66, 0xef, W0, E, Any, Full(4), RVM;
    Pxorq           "pxorq", M0F, P66, 0xef, W1, E, Any, Full(8), RVM;
    Pternlogd       "pternlogd", M0F3A, P66, 0x25, W0, E, Any, Full(4), UPDATE.immediate();
    Pternlogq       "pternlogq", M0F3A, P66, 0x25, W1, E, Any, Full(8), UPDATE.immediate();

    // Shifts.
    PsllwImm        "psllw", M0F, P66, 0x71, W0, LVE, Any, FullMem, shift_imm(6);
    PsrlwImm        "psrlw", M0F, P66, 0x71, W0, LVE, Any, FullMem, shift_imm(2);
    PsrawImm        "psraw", M0F, P66, 0x71, W0, LVE, Any, FullMem, shift_imm(4);
    PslldImm        "pslld", M0F, P66, 0x72, W0, LVE, Any, Full(4), shift_imm(6);
    PsrldImm        "psrld", M0F, P66, 0x72, W0, LVE, Any, Full(4), shift_imm(2);
    PsradImm        "psrad", M0F, P66, 0x72, W0, LVE, Any, Full(4), shift_imm(4);
    PsllqImm        "psllq", M0F, P66, 0x73, W01, LVE, Any, Full(8), shift_imm(6);
    PsrlqImm        "psrlq", M0F, P66, 0x73, W01, LVE, Any, Full(8), shift_imm(2);
    PsraqImm        "psraq", M0F, P66, 0x72, W1, E, Any, Full(8), shift_imm(4);
    Pslldq          "pslldq", M0F, P66, 0x73, W0, LVE, Any, FullMem, shift_imm(7).unmasked();
    Psrldq          "psrldq", M0F, P66, 0x73, W0, LVE, Any, FullMem, shift_imm(3).unmasked();
    ProldImm        "prold", M0F, P66, 0x72, W0, E, Any, Full(4), shift_imm(1);
    ProlqImm        "prolq", M0F, P66, 0x72, W1, E, Any, Full(8), shift_imm(1);
    PrordImm        "prord", M0F, P66, 0x72, W0, E, Any, Full(4), shift_imm(0);
    ProrqImm        "prorq", M0F, P66, 0x72, W1, E, Any, Full(8), shift_imm(0);
    Psllw           "psllw", M0F, P66, 0xf1, W0, LVE, Any, Fixed(16), RVM;
    Pslld           "pslld", M0F, P66, 0xf2, W0, LVE, Any, Fixed(16), RVM;
    Psllq           "psllq", M0F, P66, 0xf3, W01, LVE, Any, Fixed(16), RVM;
    Psrlw           "psrlw", M0F, P66, 0xd1, W0, LVE, Any, Fixed(16), RVM;
    Psrld           "psrld", M0F, P66, 0xd2, W0, LVE, Any, Fixed(16), RVM;
    Psrlq           "psrlq", M0F, P66, 0xd3, W01, LVE, Any, Fixed(16), RVM;
    Psraw           "psraw", M0F, P66, 0xe1, W0, LVE, Any, Fixed(16), RVM;
    Psrad           "psrad", M0F, P66, 0xe2, W0, LVE, Any, Fixed(16), RVM;
    Psraq           "psraq", M0F, P66, 0xe2, W1, E, Any, Fixed(16), RVM;
    Psllvd          "psllvd", M0F38, P66, 0x47, W0, VE, Any, Full(4), RVM;
    Psllvq          "psllvq", M0F38, P66, 0x47, W1, VE, Any, Full(8), RVM;
    Psrlvd          "psrlvd", M0F38, P66, 0x45, W0, VE, Any, Full(4), RVM;
    Psrlvq          "psrlvq", M0F38, P66, 0x45, W1, VE, Any, Full(8), RVM;
    Psravd          "psravd", M0F38, P66, 0x46, W0, VE, Any, Full(4), RVM;
    Psravq          "psravq", M0F38, P66, 0x46, W1, E, Any, Full(8), RVM;
    Psllvw          "psllvw", M0F38, P66, 0x12, W1, E, Any, FullMem, RVM;
    Psrlvw          "psrlvw", M0F38, P66, 0x10, W1, E, Any, FullMem, RVM;
    Psravw          "psravw", M0F38, P66, 0x11, W1, E, Any, FullMem, RVM;
    Prolvd          "prolvd", M0F38, P66, 0x15, W0, E, Any, Full(4), RVM;
    Prolvq          "prolvq", M0F38, P66, 0x15, W1, E, Any, Full(8), RVM;
    Prorvd          "prorvd", M0F38, P66, 0x14, W0, E, Any, Full(4), RVM;
    Prorvq          "prorvq", M0F38, P66, 0x14, W1, E, Any, Full(8), RVM;

    // Comparisons, and bits of each lane.
    Pcmpeqb         "pcmpeqb", M0F, P66, 0x74, W0, LV, Any, FullMem, RVM;
    Pcmpeqw         "pcmpeqw", M0F, P66, 0x75, W0, LV, Any, FullMem, RVM;
    Pcmpeqd         "pcmpeqd", M0F, P66, 0x76, W0, LV, Any, FullMem, RVM;
    Pcmpeqq         "pcmpeqq", M0F38, P66, 0x29, W0, LV, Any, FullMem, RVM;
    Pcmpgtb         "pcmpgtb", M0F, P66, 0x64, W0, LV, Any, FullMem, RVM;
    Pcmpgtw         "pcmpgtw", M0F, P66, 0x65, W0, LV, Any, FullMem, RVM;
    Pcmpgtd         "pcmpgtd", M0F, P66, 0x66, W0, LV, Any, FullMem, RVM;
    Pcmpgtq         "pcmpgtq", M0F38, P66, 0x37, W0, LV, Any, FullMem, RVM;
    Pcmpb           "pcmpb", M0F3A, P66, 0x3f, W0, E, Any, FullMem, COMPARE.immediate();
    Pcmpw           "pcmpw", M0F3A, P66, 0x3f, W1, E, Any, FullMem, COMPARE.immediate();
    Pcmpd           "pcmpd", M0F3A, P66, 0x1f, W0, E, Any, Full(4), COMPARE.immediate();
    Pcmpq           "pcmpq", M0F3A, P66, 0x1f, W1, E, Any, Full(8), COMPARE.immediate();
    Pcmpub          "pcmpub", M0F3A, P66, 0x3e, W0, E, Any, FullMem, COMPARE.immediate();
    Pcmpuw          "pcmpuw", M0F3A, P66, 0x3e, W1, E, Any, FullMem, COMPARE.immediate();
    Pcmpud          "pcmpud", M0F3A, P66, 0x1e, W0, E, Any, Full(4), COMPARE.immediate();
    Pcmpuq          "pcmpuq", M0F3A, P66, 0x1e, W1, E, Any, Full(8), COMPARE.immediate();
    Ptestmb         "ptestmb", M0F38, P66, 0x26, W0, E, Any, FullMem, COMPARE;
    Ptestmw         "ptestmw", M0F38, P66, 0x26, W1, E, Any, FullMem, COMPARE;
    Ptestmd         "ptestmd", M0F38, P66, 0x27, W0, E, Any, Full(4), COMPARE;
    Ptestmq         "ptestmq", M0F38, P66, 0x27, W1, E, Any, Full(8), COMPARE;
    Ptestnmb        "ptestnmb", M0F38, PF3, 0x26, W0, E, Any, FullMem, COMPARE;
    Ptestnmw        "ptestnmw", M0F38, PF3, 0x26, W1, E, Any, FullMem, COMPARE;
    Ptestnmd        "ptestnmd", M0F38, PF3, 0x27, W0, E, Any, Full(4), COMPARE;
    Ptestnmq        "ptestnmq", M0F38, PF3, 0x27, W1, E, Any, Full(8), COMPARE;
    Pabsb           "pabsb", M0F38, P66, 0x1c, W0, LVE, Any, FullMem, RM;
    Pabsw           "pabsw", M0F38, P66, 0x1d, W0, LVE, Any, FullMem, RM;
    Pabsd           "pabsd", M0F38, P66, 0x1e, W0, LVE, Any, Full(4), RM;
    Pabsq           "pabsq", M0F38, P66, 0x1f, W1, E, Any, Full(8), RM;
    Plzcntd         "plzcntd", M0F38, P66, 0x44, W0, E, Any, Full(4), RM;
    Plzcntq         "plzcntq", M0F38, P66, 0x44, W1, E, Any, Full(8), RM;
    Popcntb         "popcntb", M0F38, P66, 0x54, W0, E, Any, FullMem, RM;
    Popcntw         "popcntw", M0F38, P66, 0x54, W1, E, Any, FullMem, RM;
    Popcntd         "popcntd", M0F38, P66, 0x55, W0, E, Any, Full(4), RM;
    Popcntq         "popcntq", M0F38, P66, 0x55, W1, E, Any, Full(8), RM;

    // Widening and narrowing.
    Pmovsxbw        "pmovsxbw", M0F38, P66, 0x20, W0, LVE, Any, HalfMem, RM;
    Pmovsxbd        "pmovsxbd", M0F38, P66, 0x21, W0, LVE, Any, QuarterMem, RM;
    Pmovsxbq        "pmovsxbq", M0F38, P66, 0x22, W0, LVE, Any, EighthMem, RM;
    Pmovsxwd        "pmovsxwd", M0F38, P66, 0x23, W0, LVE, Any, HalfMem, RM;
    Pmovsxwq        "pmovsxwq", M0F38, P66, 0x24, W0, LVE, Any, QuarterMem, RM;
    Pmovsxdq        "pmovsxdq", M0F38, P66, 0x25, W0, LVE, Any, HalfMem, RM;
    Pmovzxbw        "pmovzxbw", M0F38, P66, 0x30, W0, LVE, Any, HalfMem, RM;
    Pmovzxbd        "pmovzxbd", M0F38, P66, 0x31, W0, LVE, Any, QuarterMem, RM;
    Pmovzxbq        "pmovzxbq", M0F38, P66, 0x32, W0, LVE, Any, EighthMem, RM;
    Pmovzxwd        "pmovzxwd", M0F38, P66, 0x33, W0, LVE, Any, HalfMem, RM;
    Pmovzxwq        "pmovzxwq", M0F38, P66, 0x34, W0, LVE, Any, QuarterMem, RM;
    Pmovzxdq        "pmovzxdq", M0F38, P66, 0x35, W0, LVE, Any, HalfMem, RM;
    Pmovwb          "pmovwb", M0F38, PF3, 0x30, W0, E, Any, HalfMem, MR;
    Pmovdb          "pmovdb", M0F38, PF3, 0x31, W0, E, Any, QuarterMem, MR;
    Pmovqb          "pmovqb", M0F38, PF3, 0x32, W0, E, Any, EighthMem, MR;
    Pmovdw          "pmovdw", M0F38, PF3, 0x33, W0, E, Any, HalfMem, MR;
    Pmovqw          "pmovqw", M0F38, PF3, 0x34, W0, E, Any, QuarterMem, MR;
    Pmovqd          "pmovqd", M0F38, PF3, 0x35, W0, E, Any, HalfMem, MR;
    Pmovswb         "pmovswb", M0F38, PF3, 0x20, W0, E, Any, HalfMem, MR;
    Pmovsdb         "pmovsdb", M0F38, PF3, 0x21, W0, E, Any, QuarterMem, MR;
    Pmovsqb         "pmovsqb", M0F38, PF3, 0x22, W0, E, Any, EighthMem, MR;
    Pmovsdw         "pmovsdw", M0F38, PF3, 0x23, W0, E, Any, HalfMem, MR;
    Pmovsqw         "pmovsqw", M0F38, PF3, 0x24, W0, E, Any, QuarterMem, MR;
    Pmovsqd         "pmovsqd", M0F38, PF3, 0x25, W0, E, Any, HalfMem, MR;
    Pmovuswb        "pmovuswb", M0F38, PF3, 0x10, W0, E, Any, HalfMem, MR;
    Pmovusdb        "pmovusdb", M0F38, PF3, 0x11, W0, E, Any, QuarterMem, MR;
    Pmovusqb        "pmovusqb", M0F38, PF3, 0x12, W0, E, Any, EighthMem, MR;
    Pmovusdw        "pmovusdw", M0F38, PF3, 0x13, W0, E, Any, HalfMem, MR;
    Pmovusqw        "pmovusqw", M0F38, PF3, 0x14, W0, E, Any, QuarterMem, MR;
    Pmovusqd        "pmovusqd", M0F38, PF3, 0x15, W0, E, Any, HalfMem, MR;
    Packssdw        "packssdw", M0F, P66, 0x6b, W0, LVE, Any, Full(4), RVM;
    Packusdw        "packusdw", M0F38, P66, 0x2b, W0, LVE, Any, Full(4), RVM;
    Packsswb        "packsswb", M0F, P66, 0x63, W0, LVE, Any, FullMem, RVM;
    Packuswb        "packuswb", M0F, P66, 0x67, W0, LVE, Any, FullMem, RVM;
    Punpcklbw       "punpcklbw", M0F, P66, 0x60, W0, LVE, Any, FullMem, RVM;
    Punpcklwd       "punpcklwd", M0F, P66, 0x61, W0, LVE, Any, FullMem, RVM;
    Punpckldq       "punpckldq", M0F, P66, 0x62, W0, LVE, Any, Full(4), RVM;
    Punpcklqdq      "punpcklqdq", M0F, P66, 0x6c, W01, LVE, Any, Full(8), RVM;
    Punpckhbw       "punpckhbw", M0F, P66, 0x68, W0, LVE, Any, FullMem, RVM;
    Punpckhwd       "punpckhwd", M0F, P66, 0x69, W0, LVE, Any, FullMem, RVM;
    Punpckhdq       "punpckhdq", M0F, P66, 0x6a, W0, LVE, Any, Full(4), RVM;
    Punpckhqdq      "punpckhqdq", M0F, P66, 0x6d, W01, LVE, Any, Full(8), RVM;

    // Shuffles, extracts and inserts.
    Shufps          "shufps", M0F, NP, 0xc6, W0, LVE, Any, Full(4), RVM.immediate();
    Shufpd          "shufpd", M0F, P66, 0xc6, W01, LVE, Any, Full(8), RVM.immediate();
    Pshufd          "pshufd", M0F, P66, 0x70, W0, LVE, Any, Full(4), RM.immediate();
    Pshuflw         "pshuflw", M0F, PF2, 0x70, W0, LVE, Any, FullMem, RM.immediate();
    Pshufhw         "pshufhw", M0F, PF3, 0x70, W0, LVE, Any, FullMem, RM.immediate();
    Pshufb          "pshufb", M0F38, P66, 0x00, W0, LVE, Any, FullMem, RVM;
    Permilps        "permilps", M0F3A, P66, 0x04, W0, VE, Any, Full(4), RM.immediate();
    Permilpd        "permilpd", M0F3A, P66, 0x05, W01, VE, Any, Full(8), RM.immediate();
    PermilpsVar     "permilps", M0F38, P66, 0x0c, W0, VE, Any, Full(4), RVM;
    PermilpdVar     "permilpd", M0F38, P66, 0x0d, W01, VE, Any, Full(8), RVM;
    Perm2f128       "perm2f128", M0F3A, P66, 0x06, W0, V, Wide, FullMem, RVM.immediate();
    Perm2i128       "perm2i128", M0F3A, P66, 0x46, W0, V, Wide, FullMem, RVM.immediate();
    Extractf128     "extractf128", M0F3A, P66, 0x19, W0, V, Wide, Fixed(16), MR.immediate();
    Insertf128      "insertf128", M0F3A, P66, 0x18, W0, V, Wide, Fixed(16), RVM.immediate();
    Extractf32x4    "extractf32x4", M0F3A, P66, 0x19, W0, E, Wide, Fixed(16), MR.immediate();
    Insertf32x4     "insertf32x4", M0F3A, P66, 0x18, W0, E, Wide, Fixed(16), RVM.immediate();
    Extractf64x4    "extractf64x4", M0F3A, P66, 0x1b, W1, E, Zmm, Fixed(32), MR.immediate();
    Insertf64x4     "insertf64x4", M0F3A, P66, 0x1a, W1, E, Zmm, Fixed(32), RVM.immediate();
    Extracti128     "extracti128", M0F3A, P66, 0x39, W0, V, Wide, Fixed(16), MR.immediate();
    Inserti128      "inserti128", M0F3A, P66, 0x38, W0, V, Wide, Fixed(16), RVM.immediate();
    Extracti32x4    "extracti32x4", M0F3A, P66, 0x39, W0, E, Wide, Fixed(16), MR.immediate();
    Inserti32x4     "inserti32x4", M0F3A, P66, 0x38, W0, E, Wide, Fixed(16), RVM.immediate();
    Extracti64x4    "extracti64x4", M0F3A, P66, 0x3b, W1, E, Zmm, Fixed(32), MR.immediate();
    Inserti64x4     "inserti64x4", M0F3A, P66, 0x3a, W1, E, Zmm, Fixed(32), RVM.immediate();
    Permps          "permps", M0F38, P66, 0x16, W0, VE, Wide, Full(4), RVM;
    Permd           "permd", M0F38, P66, 0x36, W0, VE, Wide, Full(4), RVM;
    PermpdVar       "permpd", M0F38, P66, 0x16, W1, E, Wide, Full(8), RVM;
    PermqVar        "permq", M0F38, P66, 0x36, W1, E, Wide, Full(8), RVM;
    Permb           "permb", M0F38, P66, 0x8d, W0, E, Any, FullMem, RVM;
    Permw           "permw", M0F38, P66, 0x8d, W1, E, Any, FullMem, RVM;
    Permq           "permq", M0F3A, P66, 0x00, W1, VE, Wide, Full(8), RM.immediate();
    Permpd          "permpd", M0F3A, P66, 0x01, W1, VE, Wide, Full(8), RM.immediate();
    Permt2b         "permt2b", M0F38, P66, 0x7d, W0, E, Any, FullMem, UPDATE;
    Permt2w         "permt2w", M0F38, P66, 0x7d, W1, E, Any, FullMem, UPDATE;
    Permt2d         "permt2d", M0F38, P66, 0x7e, W0, E, Any, Full(4), UPDATE;
    Permt2q         "permt2q", M0F38, P66, 0x7e, W1, E, Any, Full(8), UPDATE;
    Permt2ps        "permt2ps", M0F38, P66, 0x7f, W0, E, Any, Full(4), UPDATE;
    Permt2pd        "permt2pd", M0F38, P66, 0x7f, W1, E, Any, Full(8), UPDATE;
    Permi2b         "permi2b", M0F38, P66, 0x75, W0, E, Any, FullMem, UPDATE;
    Permi2w         "permi2w", M0F38, P66, 0x75, W1, E, Any, FullMem, UPDATE;
    Permi2d         "permi2d", M0F38, P66, 0x76, W0, E, Any, Full(4), UPDATE;
    Permi2q         "permi2q", M0F38, P66, 0x76, W1, E, Any, Full(8), UPDATE;
    Permi2ps        "permi2ps", M0F38, P66, 0x77, W0, E, Any, Full(4), UPDATE;
    Permi2pd        "permi2pd", M0F38, P66, 0x77, W1, E, Any, Full(8), UPDATE;
    Shuff32x4       "shuff32x4", M0F3A, P66, 0x23, W0, E, Wide, Full(4), RVM.immediate();
    Shuff64x2       "shuff64x2", M0F3A, P66, 0x23, W1, E, Wide, Full(8), RVM.immediate();
    Shufi32x4       "shufi32x4", M0F3A, P66, 0x43, W0, E, Wide, Full(4), RVM.immediate();
    Shufi64x2       "shufi64x2", M0F3A, P66, 0x43, W1, E, Wide, Full(8), RVM.immediate();
    Alignd          "alignd", M0F3A, P66, 0x03, W0, E, Any, Full(4), RVM.immediate();
    Alignq          "alignq", M0F3A, P66, 0x03, W1, E, Any, Full(8), RVM.immediate();
    Palignr         "palignr", M0F3A, P66, 0x0f, W0, LVE, Any, FullMem, RVM.immediate();
    Movhlps         "movhlps", M0F, NP, 0x12, W0, LVE, Scalar, Fixed(8), RVR.unmasked();
    Movlhps         "movlhps", M0F, NP, 0x16, W0, LVE, Scalar, Fixed(8), RVR.unmasked();
    Movshdup        "movshdup", M0F, PF3, 0x16, W0, LVE, Any, FullMem, RM;
    Movsldup        "movsldup", M0F, PF3, 0x12, W0, LVE, Any, FullMem, RM;
    Movddup         "movddup", M0F, PF2, 0x12, W01, LVE, Any, Movddup, RM;
    Insertps        "insertps", M0F3A, P66, 0x21, W0, LVE, Scalar, Fixed(4), RVM.unmasked().immediate();
    Pinsrb          "pinsrb", M0F3A, P66, 0x20, W0, LVE, Scalar, Fixed(1), RV_GPR.immediate();
    Pinsrw          "pinsrw", M0F, P66, 0xc4, W0, LVE, Scalar, Fixed(2), RV_GPR.immediate();
    Pinsrd          "pinsrd", M0F3A, P66, 0x22, W0, LVE, Scalar, Fixed(4), RV_GPR.immediate();
    Pinsrq          "pinsrq", M0F3A, P66, 0x22, W1, LVE, Scalar, Fixed(8), RV_GPR.immediate();
    Pextrb          "pextrb", M0F3A, P66, 0x14, W0, LVE, Scalar, Fixed(1), GPR_INTO.memory().immediate();
    Pextrw          "pextrw", M0F, P66, 0xc5, W0, LVE, Scalar, Fixed(2), GPR_FROM.register().immediate();
    PextrwStore     "pextrw", M0F3A, P66, 0x15, W0, LVE, Scalar, Fixed(2), GPR_INTO.memory().immediate();
    Pextrd          "pextrd", M0F3A, P66, 0x16, W0, LVE, Scalar, Fixed(4), GPR_INTO.memory().immediate();
    Pextrq          "pextrq", M0F3A, P66, 0x16, W1, LVE, Scalar, Fixed(8), GPR_INTO.memory().immediate();

    // Blends.
    Blendps         "blendps", M0F3A, P66, 0x0c, W0, LV, Any, FullMem, RVM.immediate();
    Blendpd         "blendpd", M0F3A, P66, 0x0d, W0, LV, Any, FullMem, RVM.immediate();
    Pblendw         "pblendw", M0F3A, P66, 0x0e, W0, LV, Any, FullMem, RVM.immediate();
    Pblendd         "pblendd", M0F3A, P66, 0x02, W0, V, Any, FullMem, RVM.immediate();
    Blendvps        "blendvps", M0F3A, P66, 0x4a, W0, V, Any, FullMem, BLEND;
    Blendvpd        "blendvpd", M0F3A, P66, 0x4b, W0, V, Any, FullMem, BLEND;
    Pblendvb        "pblendvb", M0F3A, P66, 0x4c, W0, V, Any, FullMem, BLEND;
    BlendvpsXmm0    "blendvps", M0F38, P66, 0x14, W0, L, Any, FullMem, RVM;
    BlendvpdXmm0    "blendvpd", M0F38, P66, 0x15, W0, L, Any, FullMem, RVM;
    PblendvbXmm0    "pblendvb", M0F38, P66, 0x10, W0, L, Any, FullMem, RVM;
    Blendmps        "blendmps", M0F38, P66, 0x65, W0, E, Any, Full(4), RVM;
    Blendmpd        "blendmpd", M0F38, P66, 0x65, W1, E, Any, Full(8), RVM;
    Pblendmb        "pblendmb", M0F38, P66, 0x66, W0, E, Any, FullMem, RVM;
    Pblendmw        "pblendmw", M0F38, P66, 0x66, W1, E, Any, FullMem, RVM;
    Pblendmd        "pblendmd", M0F38, P66, 0x64, W0, E, Any, Full(4), RVM;
    Pblendmq        "pblendmq", M0F38, P66, 0x64, W1, E, Any, Full(8), RVM;
    Compressps      "compressps", M0F38, P66, 0x8a, W0, E, Any, Fixed(4), MR;
    Compresspd      "compresspd", M0F38, P66, 0x8a, W1, E, Any, Fixed(8), MR;
    Pcompressd      "pcompressd", M0F38, P66, 0x8b, W0, E, Any, Fixed(4), MR;
    Pcompressq      "pcompressq", M0F38, P66, 0x8b, W1, E, Any, Fixed(8), MR;
    Expandps        "expandps", M0F38, P66, 0x88, W0, E, Any, Fixed(4), RM;
    Expandpd        "expandpd", M0F38, P66, 0x88, W1, E, Any, Fixed(8), RM;
    Pexpandd        "pexpandd", M0F38, P66, 0x89, W0, E, Any, Fixed(4), RM;
    Pexpandq        "pexpandq", M0F38, P66, 0x89, W1, E, Any, Fixed(8), RM;

    // Masks.
    Kmovb           "kmovb", M0F, P66, 0x90, W0, V, Scalar, Fixed(1), MASK_RM;
    KmovbStore      "kmovb", M0F, P66, 0x91, W0, V, Scalar, Fixed(1), MASK_STORE;
    Kmovw           "kmovw", M0F, NP, 0x90, W0, V, Scalar, Fixed(2), MASK_RM;
    KmovwStore      "kmovw", M0F, NP, 0x91, W0, V, Scalar, Fixed(2), MASK_STORE;
    Kmovd           "kmovd", M0F, P66, 0x90, W1, V, Scalar, Fixed(4), MASK_RM;
    KmovdStore      "kmovd", M0F, P66, 0x91, W1, V, Scalar, Fixed(4), MASK_STORE;
    Kmovq           "kmovq", M0F, NP, 0x90, W1, V, Scalar, Fixed(8), MASK_RM;
    KmovqStore      "kmovq", M0F, NP, 0x91, W1, V, Scalar, Fixed(8), MASK_STORE;
    KmovbToMask     "kmovb", M0F, P66, 0x92, W0, V, Scalar, Fixed(4), MASK_FROM_GPR;
    KmovbToGpr      "kmovb", M0F, P66, 0x93, W0, V, Scalar, Fixed(4), GPR_FROM_MASK;
    KmovwToMask     "kmovw", M0F, NP, 0x92, W0, V, Scalar, Fixed(4), MASK_FROM_GPR;
    KmovwToGpr      "kmovw", M0F, NP, 0x93, W0, V, Scalar, Fixed(4), GPR_FROM_MASK;
    KmovdToMask     "kmovd", M0F, PF2, 0x92, W0, V, Scalar, Fixed(4), MASK_FROM_GPR;
    KmovdToGpr      "kmovd", M0F, PF2, 0x93, W0, V, Scalar, Fixed(4), GPR_FROM_MASK;
    KmovqToMask     "kmovq", M0F, PF2, 0x92, W1, V, Scalar, Fixed(4), MASK_FROM_GPR;
    KmovqToGpr      "kmovq", M0F, PF2, 0x93, W1, V, Scalar, Fixed(4), GPR_FROM_MASK;
    Kandb           "kandb", M0F, P66, 0x41, W0, V, MaskPair, Fixed(1), MASK_RVR;
    Kandw           "kandw", M0F, NP, 0x41, W0, V, MaskPair, Fixed(2), MASK_RVR;
    Kandd           "kandd", M0F, P66, 0x41, W1, V, MaskPair, Fixed(4), MASK_RVR;
    Kandq           "kandq", M0F, NP, 0x41, W1, V, MaskPair, Fixed(8), MASK_RVR;
    Kandnb          "kandnb", M0F, P66, 0x42, W0, V, MaskPair, Fixed(1), MASK_RVR;
    Kandnw          "kandnw", M0F, NP, 0x42, W0, V, MaskPair, Fixed(2), MASK_RVR;
    Kandnd          "kandnd", M0F, P66, 0x42, W1, V, MaskPair, Fixed(4), MASK_RVR;
    Kandnq          "kandnq", M0F, NP, 0x42, W1, V, MaskPair, Fixed(8), MASK_RVR;
    Korb            "korb", M0F, P66, 0x45, W0, V, MaskPair, Fixed(1), MASK_RVR;
    Korw            "korw", M0F, NP, 0x45, W0, V, MaskPair, Fixed(2), MASK_RVR;
    Kord            "kord", M0F, P66, 0x45, W1, V, MaskPair, Fixed(4), MASK_RVR;
    Korq            "korq", M0F, NP, 0x45, W1, V, MaskPair, Fixed(8), MASK_RVR;
    Kxnorb          "kxnorb", M0F, P66, 0x46, W0, V, MaskPair, Fixed(1), MASK_RVR;
    Kxnorw          "kxnorw", M0F, NP, 0x46, W0, V, MaskPair, Fixed(2), MASK_RVR;
    Kxnord          "kxnord", M0F, P66, 0x46, W1, V, MaskPair, Fixed(4), MASK_RVR;
    Kxnorq          "kxnorq", M0F, NP, 0x46, W1, V, MaskPair, Fixed(8), MASK_RVR;
    Kxorb           "kxorb", M0F, P66, 0x47, W0, V, MaskPair, Fixed(1), MASK_RVR;
    Kxorw           "kxorw", M0F, NP, 0x47, W0, V, MaskPair, Fixed(2), MASK_RVR;
    Kxord           "kxord", M0F, P66, 0x47, W1, V, MaskPair, Fixed(4), MASK_RVR;
    Kxorq           "kxorq", M0F, NP, 0x47, W1, V, MaskPair, Fixed(8), MASK_RVR;
    Kaddb           "kaddb", M0F, P66, 0x4a, W0, V, MaskPair, Fixed(1), MASK_RVR;
    Kaddw           "kaddw", M0F, NP, 0x4a, W0, V, MaskPair, Fixed(2), MASK_RVR;
    Kaddd           "kaddd", M0F, P66, 0x4a, W1, V, MaskPair, Fixed(4), MASK_RVR;
    Kaddq           "kaddq", M0F, NP, 0x4a, W1, V, MaskPair, Fixed(8), MASK_RVR;
    Knotb           "knotb", M0F, P66, 0x44, W0, V, Scalar, Fixed(1), MASK_RM.register();
    Knotw           "knotw", M0F, NP, 0x44, W0, V, Scalar, Fixed(2), MASK_RM.register();
    Knotd           "knotd", M0F, P66, 0x44, W1, V, Scalar, Fixed(4), MASK_RM.register();
    Knotq           "knotq", M0F, NP, 0x44, W1, V, Scalar, Fixed(8), MASK_RM.register();
    Kunpckbw        "kunpckbw", M0F, P66, 0x4b, W0, V, MaskPair, Fixed(2), MASK_RVR;
    Kunpckwd        "kunpckwd", M0F, NP, 0x4b, W0, V, MaskPair, Fixed(4), MASK_RVR;
    Kunpckdq        "kunpckdq", M0F, NP, 0x4b, W1, V, MaskPair, Fixed(8), MASK_RVR;
    Kshiftlb        "kshiftlb", M0F3A, P66, 0x32, W0, V, Scalar, Fixed(1), MASK_RM.register().immediate();
    Kshiftlw        "kshiftlw", M0F3A, P66, 0x32, W1, V, Scalar, Fixed(2), MASK_RM.register().immediate();
    Kshiftld        "kshiftld", M0F3A, P66, 0x33, W0, V, Scalar, Fixed(4), MASK_RM.register().immediate();
    Kshiftlq        "kshiftlq", M0F3A, P66, 0x33, W1, V, Scalar, Fixed(8), MASK_RM.register().immediate();
    Kshiftrb        "kshiftrb", M0F3A, P66, 0x30, W0, V, Scalar, Fixed(1), MASK_RM.register().immediate();
    Kshiftrw        "kshiftrw", M0F3A, P66, 0x30, W1, V, Scalar, Fixed(2), MASK_RM.register().immediate();
    Kshiftrd        "kshiftrd", M0F3A, P66, 0x31, W0, V, Scalar, Fixed(4), MASK_RM.register().immediate();
    Kshiftrq        "kshiftrq", M0F3A, P66, 0x31, W1, V, Scalar, Fixed(8), MASK_RM.register().immediate();
    Kortestb        "kortestb", M0F, P66, 0x98, W0, V, Scalar, Fixed(1), MASK_FLAGS;
    Kortestw        "kortestw", M0F, NP, 0x98, W0, V, Scalar, Fixed(2), MASK_FLAGS;
    Kortestd        "kortestd", M0F, P66, 0x98, W1, V, Scalar, Fixed(4), MASK_FLAGS;
    Kortestq        "kortestq", M0F, NP, 0x98, W1, V, Scalar, Fixed(8), MASK_FLAGS;
    Ktestb          "ktestb", M0F, P66, 0x99, W0, V, Scalar, Fixed(1), MASK_FLAGS;
    Ktestw          "ktestw", M0F, NP, 0x99, W0, V, Scalar, Fixed(2), MASK_FLAGS;
    Ktestd          "ktestd", M0F, P66, 0x99, W1, V, Scalar, Fixed(4), MASK_FLAGS;
    Ktestq          "ktestq", M0F, NP, 0x99, W1, V, Scalar, Fixed(8), MASK_FLAGS;
    Pmovm2b         "pmovm2b", M0F38, PF3, 0x28, W0, E, Any, FullMem, VEC_FROM_MASK;
    Pmovb2m         "pmovb2m", M0F38, PF3, 0x29, W0, E, Any, FullMem, MASK_FROM_VEC;
    Pmovm2w         "pmovm2w", M0F38, PF3, 0x28, W1, E, Any, FullMem, VEC_FROM_MASK;
    Pmovw2m         "pmovw2m", M0F38, PF3, 0x29, W1, E, Any, FullMem, MASK_FROM_VEC;
    Pmovm2d         "pmovm2d", M0F38, PF3, 0x38, W0, E, Any, FullMem, VEC_FROM_MASK;
    Pmovd2m         "pmovd2m", M0F38, PF3, 0x39, W0, E, Any, FullMem, MASK_FROM_VEC;
    Pmovm2q         "pmovm2q", M0F38, PF3, 0x38, W1, E, Any, FullMem, VEC_FROM_MASK;
    Pmovq2m         "pmovq2m", M0F38, PF3, 0x39, W1, E, Any, FullMem, MASK_FROM_VEC;
    Movmskps        "movmskps", M0F, NP, 0x50, W0, LV, Any, FullMem, GPR_FROM.register();
    Movmskpd        "movmskpd", M0F, P66, 0x50, W0, LV, Any, FullMem, GPR_FROM.register();
    Pmovmskb        "pmovmskb", M0F, P66, 0xd7, W0, LV, Any, FullMem, GPR_FROM.register();
    Ptest           "ptest", M0F38, P66, 0x17, W0, LV, Any, FullMem, FLAGS;

    // Gathers, scatters and masked moves.
    Gatherdps       "gatherdps", M0F38, P66, 0x92, W0, VE, Any, Fixed(4), GATHER;
    Gatherqps       "gatherqps", M0F38, P66, 0x93, W0, VE, Any, Fixed(4), GATHER;
    Gatherdpd       "gatherdpd", M0F38, P66, 0x92, W1, VE, Any, Fixed(8), GATHER;
    Gatherqpd       "gatherqpd", M0F38, P66, 0x93, W1, VE, Any, Fixed(8), GATHER;
    Pgatherdd       "pgatherdd", M0F38, P66, 0x90, W0, VE, Any, Fixed(4), GATHER;
    Pgatherqd       "pgatherqd", M0F38, P66, 0x91, W0, VE, Any, Fixed(4), GATHER;
    Pgatherdq       "pgatherdq", M0F38, P66, 0x90, W1, VE, Any, Fixed(8), GATHER;
    Pgatherqq       "pgatherqq", M0F38, P66, 0x91, W1, VE, Any, Fixed(8), GATHER;
    Scatterdps      "scatterdps", M0F38, P66, 0xa2, W0, E, Any, Fixed(4), SCATTER;
    Scatterqps      "scatterqps", M0F38, P66, 0xa3, W0, E, Any, Fixed(4), SCATTER;
    Scatterdpd      "scatterdpd", M0F38, P66, 0xa2, W1, E, Any, Fixed(8), SCATTER;
    Scatterqpd      "scatterqpd", M0F38, P66, 0xa3, W1, E, Any, Fixed(8), SCATTER;
    Pscatterdd      "pscatterdd", M0F38, P66, 0xa0, W0, E, Any, Fixed(4), SCATTER;
    Pscatterqd      "pscatterqd", M0F38, P66, 0xa1, W0, E, Any, Fixed(4), SCATTER;
    Pscatterdq      "pscatterdq", M0F38, P66, 0xa0, W1, E, Any, Fixed(8), SCATTER;
    Pscatterqq      "pscatterqq", M0F38, P66, 0xa1, W1, E, Any, Fixed(8), SCATTER;
    Maskmovps       "maskmovps", M0F38, P66, 0x2c, W0, V, Any, FullMem, RVM.memory_only();
    MaskmovpsStore  "maskmovps", M0F38, P66, 0x2e, W0, V, Any, FullMem, MASKED_STORE;
    Maskmovpd       "maskmovpd", M0F38, P66, 0x2d, W0, V, Any, FullMem, RVM.memory_only();
    MaskmovpdStore  "maskmovpd", M0F38, P66, 0x2f, W0, V, Any, FullMem, MASKED_STORE;
    Pmaskmovd       "pmaskmovd", M0F38, P66, 0x8c, W0, V, Any, FullMem, RVM.memory_only();
    PmaskmovdStore  "pmaskmovd", M0F38, P66, 0x8e, W0, V, Any, FullMem, MASKED_STORE;
    Pmaskmovq       "pmaskmovq", M0F38, P66, 0x8c, W1, V, Any, FullMem, RVM.memory_only();
    PmaskmovqStore  "pmaskmovq", M0F38, P66, 0x8e, W1, V, Any, FullMem, MASKED_STORE;
}
