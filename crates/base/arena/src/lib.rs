//! Typed handles and the vectors that they index.
//!
//! A graph refers to a node, a kernel to a value by a *handle*: a small number. A vector that is indexed by one kind of
//! handle refuses all others when it is compiled, so that a dimension never indexes nodes.
//!
//! ```
//! use loopwright_arena::{TiVec, handle};
//!
//! handle! {
//!     /// A city.
//!     pub struct City;
//! }
//!
//! let mut names: TiVec<City, &str> = TiVec::new();
//! let pisa = names.push_and_get_key("Pisa");
//! assert_eq!(names[pisa], "Pisa");
//! assert_eq!(names.iter_enumerated().next(), Some((City(0), &"Pisa")));
//! ```

#![forbid(unsafe_code)]

pub use typed_index_collections::{TiSlice, TiVec};

/// Declares a handle: a `u32` that indexes a [`TiVec`].
#[macro_export]
macro_rules! handle {
    ($($(#[$attribute:meta])* $vis:vis struct $name:ident;)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        $vis struct $name(pub u32);

        impl From<usize> for $name {
            #[inline]
            fn from(index: usize) -> $name {
                $name(u32::try_from(index).expect("an arena has fewer than 2^32 elements"))
            }
        }

        impl From<$name> for usize {
            #[inline]
            fn from(handle: $name) -> usize {
                handle.0 as usize
            }
        }
    )*};
}
