//! The memory a kernel works on: regions of bytes that know how long they are and, where the kernel
//! itself made them, which of their bytes have been written.

use loopwright_ops::DType;
use smallvec::SmallVec;
use std::cell::Cell;

/// Which region a pointer points into. A pointer's first slot is [`RegionId::bits`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RegionId {
    /// An argument of the kernel.
    Argument(u32),
    /// Memory of the work-group.
    Group(u32),
    /// Memory of the work-item.
    Item(u32),
}

impl RegionId {
    pub fn bits(self) -> u64 {
        let (tag, number) = match self {
            RegionId::Argument(number) => (0, number),
            RegionId::Group(number) => (1, number),
            RegionId::Item(number) => (2, number),
        };
        tag << 32 | u64::from(number)
    }

    pub fn from_bits(bits: u64) -> RegionId {
        let number = bits as u32;
        match bits >> 32 {
            0 => RegionId::Argument(number),
            1 => RegionId::Group(number),
            _ => RegionId::Item(number),
        }
    }
}

/// A pointer as a `u64` in memory: which region in the upper 22 bits, which byte of it in the lower
/// 42; `None` if the byte is further away than any region is long.
pub(super) fn pack_pointer(region: u64, offset: u64) -> Option<u64> {
    let offset = offset as i64;
    let number = region & 0xffff_ffff;
    if number >= 1 << 20 || !(-(1 << 41)..1 << 41).contains(&offset) {
        return None;
    }
    Some((region >> 32) << 62 | number << 42 | offset as u64 & ((1 << 42) - 1))
}

/// The two slots of a packed pointer.
pub(super) fn unpack_pointer(packed: u64) -> [u64; 2] {
    let number = packed >> 42 & ((1 << 20) - 1);
    let offset = (packed << 22) as i64 >> 22;
    [(packed >> 62) << 32 | number, offset as u64]
}

/// The bytes of one access; no vector is wider than a few cache lines.
pub(super) type Copied = SmallVec<[u8; 64]>;

/// One region.
#[derive(Debug)]
pub(super) enum Region<'a> {
    /// The host's, only read.
    Read(&'a [u8]),
    /// The host's.
    Write(&'a mut [u8]),
    /// The host's; other regions may overlap it.
    Shared(&'a [Cell<u8>]),
    /// The kernel's own.
    Own(Own),
}

/// Memory that a kernel made; undefined at first.
#[derive(Debug, Default)]
pub(super) struct Own {
    bytes: Vec<u8>,
    defined: Vec<bool>,
}

impl Own {
    /// So many undefined bytes; `None` where there is not that much memory.
    pub fn new(bytes: u64) -> Option<Own> {
        let mut own = Own::default();
        own.reset(bytes).then_some(own)
    }

    /// Makes it this long and undefined; says whether there was memory for it.
    pub fn reset(&mut self, bytes: u64) -> bool {
        let Ok(bytes) = usize::try_from(bytes) else {
            return false;
        };
        self.defined.clear();
        let more = bytes.saturating_sub(self.bytes.len());
        if self.bytes.try_reserve(more).is_err() || self.defined.try_reserve(bytes).is_err() {
            return false;
        }
        self.bytes.resize(bytes, 0);
        self.defined.resize(bytes, false);
        true
    }
}

/// Why an access did not happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    Bounds,
    Undefined,
    ReadOnly,
}

impl Region<'_> {
    pub fn len(&self) -> usize {
        match self {
            Region::Read(bytes) => bytes.len(),
            Region::Write(bytes) => bytes.len(),
            Region::Shared(cells) => cells.len(),
            Region::Own(own) => own.bytes.len(),
        }
    }

    /// The bytes from `at` on, if they are there and defined; in `copy` if they cannot be lent.
    pub fn read<'r>(
        &'r self,
        at: usize,
        count: usize,
        copy: &'r mut Copied,
    ) -> Result<&'r [u8], Fault> {
        let end = at.checked_add(count).ok_or(Fault::Bounds)?;
        let range = at..end;
        match self {
            Region::Read(bytes) => bytes.get(range).ok_or(Fault::Bounds),
            Region::Write(bytes) => bytes.get(range).ok_or(Fault::Bounds),
            Region::Shared(cells) => {
                let cells = cells.get(range).ok_or(Fault::Bounds)?;
                copy.extend(cells.iter().map(Cell::get));
                Ok(copy)
            }
            Region::Own(own) => {
                let bytes = own.bytes.get(range.clone()).ok_or(Fault::Bounds)?;
                if own.defined[range].iter().all(|&defined| defined) {
                    Ok(bytes)
                } else {
                    Err(Fault::Undefined)
                }
            }
        }
    }

    /// Has `fill` write all bytes from `at` on; they count as defined from now on.
    pub fn write(
        &mut self,
        at: usize,
        count: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Fault> {
        let end = at.checked_add(count).ok_or(Fault::Bounds)?;
        let range = at..end;
        match self {
            Region::Read(_) => Err(Fault::ReadOnly),
            Region::Write(bytes) => {
                fill(bytes.get_mut(range).ok_or(Fault::Bounds)?);
                Ok(())
            }
            Region::Shared(cells) => {
                let cells = cells.get(range).ok_or(Fault::Bounds)?;
                let mut bytes = Copied::from_elem(0, count);
                fill(&mut bytes);
                for (cell, byte) in cells.iter().zip(&bytes) {
                    cell.set(*byte);
                }
                Ok(())
            }
            Region::Own(own) => {
                fill(own.bytes.get_mut(range.clone()).ok_or(Fault::Bounds)?);
                own.defined[range].fill(true);
                Ok(())
            }
        }
    }
}

/// The bits of the element whose bytes these are, as [`loopwright_ops::Scalar::from_bits`] takes them.
pub(super) fn read_bits(dtype: DType, bytes: &[u8]) -> u64 {
    let bits = match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => unreachable!("an element has 1, 2, 4 or 8 bytes, not {}", bytes.len()),
    };
    match dtype {
        DType::Bool => u64::from(bits != 0),
        _ => bits,
    }
}

/// Writes an element's bits to its bytes.
pub(super) fn write_bits(bits: u64, bytes: &mut [u8]) {
    match bytes.len() {
        1 => bytes[0] = bits as u8,
        2 => bytes.copy_from_slice(&(bits as u16).to_le_bytes()),
        4 => bytes.copy_from_slice(&(bits as u32).to_le_bytes()),
        8 => bytes.copy_from_slice(&bits.to_le_bytes()),
        count => unreachable!("an element has 1, 2, 4 or 8 bytes, not {count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_survive_memory() {
        for region in [
            RegionId::Argument(0),
            RegionId::Group(3),
            RegionId::Item((1 << 20) - 1),
        ] {
            for offset in [0i64, 1, -1, (1 << 41) - 1, -(1 << 41)] {
                let packed = pack_pointer(region.bits(), offset as u64);
                let unpacked = packed.map(unpack_pointer);
                assert_eq!(unpacked, Some([region.bits(), offset as u64]));
            }
        }
        assert_eq!(pack_pointer(RegionId::Item(0).bits(), 1 << 41), None);
    }
}
