//! Programs whose schedule was refused and that run under a plainer one: whoever embeds the library may tell its users.

use loopwright_compile::Plainer;
use std::sync::OnceLock;

/// What is told of a program: its name, and what stands in for which schedule.
type Listener = Box<dyn Fn(&str, &Plainer) + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Sets who is told of programs that were compiled with a plainer schedule than the one that was chosen for the machine.
/// It is called by the thread that compiles. The first one stays; says whether this is it.
pub fn on_plainer_schedule(listen: impl Fn(&str, &Plainer) + Send + Sync + 'static) -> bool {
    LISTENER.set(Box::new(listen)).is_ok()
}

pub(crate) fn tell(name: &str, plainer: &Plainer) {
    if let Some(listener) = LISTENER.get() {
        listener(name, plainer);
    }
}
