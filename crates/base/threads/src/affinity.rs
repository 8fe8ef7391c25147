//! Which cores a thread runs on.

/// Keeps this thread on one core: the one at this place among those that the process may use, counted
/// around. Where the system has no such thing or does not allow it, nothing happens: it changes speed
/// and no result.
#[cfg(target_os = "linux")]
pub(crate) fn pin_to_core(place: usize) {
    let size = std::mem::size_of::<libc::cpu_set_t>();
    // SAFETY: all zeros is the empty set.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set has the size that is passed; 0 is this thread.
    if unsafe { libc::sched_getaffinity(0, size, &raw mut allowed) } != 0 {
        return;
    }
    let cores: Vec<usize> = (0..8 * size)
        // SAFETY: the core is within the bits of the set.
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &allowed) })
        .collect();
    if cores.is_empty() {
        return;
    }
    // SAFETY: all zeros is the empty set.
    let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the core is within the bits of the set.
    unsafe { libc::CPU_SET(cores[place % cores.len()], &mut one) };
    // SAFETY: as for the getter. A refusal leaves the thread where it may run, as is said above.
    unsafe { libc::sched_setaffinity(0, size, &raw const one) };
}

/// Keeps this thread on one core, on systems where that is known how to do; not here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_to_core(_place: usize) {}
