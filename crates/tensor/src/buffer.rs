//! Values: arrays of the host, of devices, or both.

use crate::session::Session;
use loopwright_graph::Array;
use loopwright_ops::DType;
use loopwright_runtime::{Context, RuntimeError};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The name of a value in the context that holds nothing else.
pub(crate) const VALUE: &str = "value";

/// A value. It lies on the host, on devices, or on both, and is moved when asked for. It only changes
/// where nobody else holds it ([`Buffer::is_shared`]).
#[derive(Clone)]
pub(crate) struct Buffer {
    shared: Arc<Shared>,
}

/// A value that is known again and not held.
pub(crate) struct Remembered(Weak<Shared>);

impl Remembered {
    pub(crate) fn is(&self, buffer: &Buffer) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&buffer.shared))
    }
}

struct Shared {
    dtype: DType,
    host: Mutex<Option<Arc<Array>>>,
    /// Where it lies on devices, by session.
    devices: Mutex<SmallVec<[(Session, Context); 1]>>,
}

impl Buffer {
    pub(crate) fn of_array(array: impl Into<Arc<Array>>) -> Buffer {
        let array = array.into();
        Buffer {
            shared: Arc::new(Shared {
                dtype: array.dtype(),
                host: Mutex::new(Some(array)),
                devices: Mutex::default(),
            }),
        }
    }

    /// The array [`VALUE`] of a context.
    pub(crate) fn of_context(session: &Session, context: Context, dtype: DType) -> Buffer {
        Buffer {
            shared: Arc::new(Shared {
                dtype,
                host: Mutex::default(),
                devices: Mutex::new(SmallVec::from_iter([(session.clone(), context)])),
            }),
        }
    }

    pub(crate) fn dtype(&self) -> DType {
        self.shared.dtype
    }

    fn devices(&self) -> MutexGuard<'_, SmallVec<[(Session, Context); 1]>> {
        let devices = self.shared.devices.lock();
        devices.unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it lies on a session's device, if it does.
    pub(crate) fn on(&self, session: &Session) -> Option<Context> {
        let devices = self.devices();
        let found = devices.iter().find(|(place, _)| place.same(session));
        found.map(|(_, context)| context.clone())
    }

    /// Says that it lies in a context, too.
    pub(crate) fn is_also_in(&self, session: &Session, context: Context) {
        self.devices().push((session.clone(), context));
    }

    /// The value on the host.
    pub(crate) fn array(&self) -> Result<Arc<Array>, RuntimeError> {
        let mut host = self
            .shared
            .host
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(array) = &*host {
            return Ok(Arc::clone(array));
        }
        let context = self.devices().first().map(|(_, context)| context.clone());
        let context = context.expect("a value is on the host or on a device");
        let array = context.read(VALUE)?;
        let array = Arc::new(array.expect("the context was made with the value"));
        Ok(Arc::clone(host.insert(array)))
    }

    /// The value on the host, if it lies there.
    pub(crate) fn on_host(&self) -> Option<Arc<Array>> {
        self.shared
            .host
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Says that its memory on a session's device has a new value: it is nowhere else any more.
    pub(crate) fn is_overwritten(&self, session: &Session) {
        *self
            .shared
            .host
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
        self.devices().retain(|(place, _)| place.same(session));
    }

    /// Something that knows it again and does not hold it.
    pub(crate) fn remembered(&self) -> Remembered {
        Remembered(Arc::downgrade(&self.shared))
    }

    /// Whether someone else holds it.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }
}
