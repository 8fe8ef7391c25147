//! Words of the text form that stand for one variant each.

use crate::ir::{Access, AtomicOp, LoopKind, Space, TileRole, WorkItem};

/// Gives an enum its words, both ways.
macro_rules! keywords {
    ($($type:ident { $($variant:ident = $word:literal),* $(,)? })*) => {$(
        impl $type {
            /// Its word in the text form.
            pub const fn keyword(self) -> &'static str {
                match self { $($type::$variant => $word,)* }
            }

            /// The variant of that word.
            pub fn from_keyword(word: &str) -> Option<$type> {
                match word { $($word => Some($type::$variant),)* _ => None }
            }

            /// Every word, for messages that list the choice.
            pub const KEYWORDS: &'static str = choice!($($word),*);
        }
    )*};
}

macro_rules! choice {
    ($first:literal $(, $word:literal)*) => { concat!("`", $first, "`" $(, ", `", $word, "`")*) };
}

keywords! {
    Space { Global = "global", Constant = "constant", Local = "local", Private = "private" }
    TileRole { Left = "left", Right = "right", Accumulator = "accumulator" }
    Access { Read = "read", Write = "write", ReadWrite = "readwrite" }
    LoopKind {
        Serial = "serial",
        Parallel = "parallel",
        Unroll = "unroll",
        Vectorize = "vectorize",
    }
    WorkItem {
        GlobalId = "global_id",
        LocalId = "local_id",
        GroupId = "group_id",
        GlobalSize = "global_size",
        LocalSize = "local_size",
        GroupCount = "group_count",
    }
    AtomicOp {
        Add = "add",
        Min = "min",
        Max = "max",
        And = "and",
        Or = "or",
        Xor = "xor",
        Exchange = "exchange",
    }
}
