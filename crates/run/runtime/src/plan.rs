//! The plan of memory: what lies where, before anything runs.

use crate::context::{place, place_scratch};
use crate::error::{RuntimeError, describe};
use crate::layout::Layout;
use crate::memory::{Loc, Packer, Placed, PoolId};
use loopwright_arena::TiVec;
use std::fmt;
use std::ops::Range;

/// What memory is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PlannedRole {
    /// An input of the program.
    Input,
    /// A state of the program.
    State,
    /// An output of the program.
    Output,
    /// Scratch memory of the routine.
    Scratch,
    /// Constants, which a device has once.
    Constant,
}

impl PlannedRole {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            PlannedRole::Input => "input",
            PlannedRole::State => "state",
            PlannedRole::Output => "output",
            PlannedRole::Scratch => "scratch",
            PlannedRole::Constant => "constant",
        }
    }
}

/// A piece of memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planned {
    /// The array's name.
    pub name: String,
    /// What it is for.
    pub role: PlannedRole,
    /// Dtype and shape, where it is an array.
    pub array: Option<String>,
    /// How long it is.
    pub bytes: usize,
    /// Where it lies. Pools are numbered from the first one of the link; those of constants come last.
    pub loc: Loc,
    /// For scratch memory: the statements of the kernel between which it is needed.
    pub live: Option<Range<u32>>,
}

/// All memory that linking a code to an empty context of a new device takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// What lies where, in the order of the kernel's parameters.
    pub entries: Vec<Planned>,
    /// Bytes of each pool.
    pub pools: TiVec<PoolId, usize>,
    /// Bytes that scratch memory would take if nothing shared any.
    pub scratch_unshared: usize,
}

impl Plan {
    pub(crate) fn new(layout: &Layout, cap: usize) -> Result<Plan, RuntimeError> {
        let mut packer = Packer::default();
        let mut entries = Vec::new();
        for array in &layout.arrays {
            let placed = place(&mut packer, &array.info.name, array.info.bytes, cap)?;
            entries.push(Planned {
                name: array.info.name.to_string(),
                role: match array.role {
                    "input" => PlannedRole::Input,
                    "state" => PlannedRole::State,
                    _ => PlannedRole::Output,
                },
                array: Some(array.info.describe()),
                bytes: array.info.bytes,
                loc: loc(placed, 0),
                live: None,
            });
        }
        let places = place_scratch(&mut packer, layout, cap)?;
        for (scratch, placed) in layout.scratch.iter().zip(places) {
            entries.push(Planned {
                name: scratch.name.clone(),
                role: PlannedRole::Scratch,
                array: None,
                bytes: scratch.bytes,
                loc: loc(placed, 0),
                live: Some(scratch.live.clone()),
            });
        }
        let mut constants = Packer::default();
        let mut known: Vec<(blake3::Hash, Placed)> = Vec::new();
        for constant in &layout.constants {
            let bytes = layout.program.constants()[constant.at].len();
            let before = known.iter().find(|(hash, _)| *hash == constant.hash);
            let placed = match before {
                Some((_, placed)) => *placed,
                None => place(&mut constants, &constant.name, bytes, cap)?,
            };
            known.push((constant.hash, placed));
            entries.push(Planned {
                name: constant.name.clone(),
                role: PlannedRole::Constant,
                array: Some(describe(constant.dtype, &constant.shape)),
                bytes,
                loc: loc(placed, packer.segments.len()),
                live: None,
            });
        }
        let mut pools: TiVec<_, _> = packer.segments.into();
        pools.extend(constants.segments);
        Ok(Plan {
            entries,
            pools,
            scratch_unshared: saturating_sum(layout.scratch.iter().map(|scratch| scratch.bytes)),
        })
    }

    /// Bytes of all pools: all are there while the routine runs.
    pub fn bytes(&self) -> usize {
        saturating_sum(self.pools.iter().copied())
    }
}

/// Sizes that no machine has can be asked for; they must not wrap around to small ones.
fn saturating_sum(bytes: impl Iterator<Item = usize>) -> usize {
    bytes.fold(0, usize::saturating_add)
}

fn loc(placed: Placed, first: usize) -> Loc {
    Loc {
        pool: PoolId::from(first + placed.segment),
        offset: placed.offset,
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (pool, bytes) in self.pools.iter_enumerated() {
            writeln!(f, "pool {}: {bytes} bytes", pool.0)?;
            let mut inside: Vec<&Planned> = self
                .entries
                .iter()
                .filter(|entry| entry.loc.pool == pool)
                .collect();
            inside.sort_by_key(|entry| entry.loc.offset);
            for entry in inside {
                let start = entry.loc.offset;
                write!(
                    f,
                    "  {start:>10} ..{:>10}  {:8} {}",
                    start + entry.bytes,
                    entry.role.name(),
                    entry.name
                )?;
                if let Some(array) = &entry.array {
                    write!(f, ": {array}")?;
                }
                if let Some(live) = &entry.live {
                    write!(f, " (statements {} .. {})", live.start, live.end)?;
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}
