//! Values: arrays of the host, of devices, or both.

use crate::session::Session;
use loopwright_graph::Array;
use loopwright_ops::DType;
use loopwright_runtime::{Context, RuntimeError};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The name of a value in the context that holds nothing else.
pub(crate) const VALUE: &str = "value";

/// Bytes from which on a value is lent where it lies. To copy a smaller one is less than to have the routine that
/// computed it work elsewhere as long as it is held.
const LENT: usize = 1 << 14;

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
    devices: Mutex<Places>,
}

/// Where a value lies on devices.
#[derive(Default)]
struct Places {
    /// By session.
    contexts: SmallVec<[(Session, Context); 1]>,
    /// How many hold on to them: see [`Buffer::pin`].
    pins: usize,
}

/// Holds a value where it lies on devices.
pub(crate) struct Pin(Buffer);

impl Drop for Pin {
    fn drop(&mut self) {
        self.0.places().pins -= 1;
    }
}

/// The memory of a value that only one tensor has, which may be written there. The value stays where it is as long as this
/// is held.
///
/// Nothing keeps the tensor from being used while others write: its owner does not use it then.
pub struct Exclusive {
    address: *mut u8,
    bytes: usize,
    _pin: Pin,
}

// SAFETY: the address is not used here, and the memory is held by the pin.
unsafe impl Send for Exclusive {}
// SAFETY: as above.
unsafe impl Sync for Exclusive {}

impl Exclusive {
    /// The address of the first byte.
    pub fn address(&self) -> *mut u8 {
        self.address
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
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
                devices: Mutex::new(Places {
                    contexts: SmallVec::from_iter([(session.clone(), context)]),
                    pins: 0,
                }),
            }),
        }
    }

    pub(crate) fn dtype(&self) -> DType {
        self.shared.dtype
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        let places = self.shared.devices.lock();
        places.unwrap_or_else(PoisonError::into_inner)
    }

    fn host(&self) -> MutexGuard<'_, Option<Arc<Array>>> {
        let host = self.shared.host.lock();
        host.unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it lies on a session's device, if it does.
    pub(crate) fn on(&self, session: &Session) -> Option<Context> {
        self.place_where(|place| place.same(session))
    }

    /// Where it lies on another stream of a session's device, if it does.
    fn beside(&self, session: &Session) -> Option<Context> {
        self.place_where(|place| place.is_beside(session))
    }

    fn place_where(&self, is: impl Fn(&Session) -> bool) -> Option<Context> {
        let places = self.places();
        let found = places.contexts.iter().find(|(place, _)| is(place));
        found.map(|(_, context)| context.clone())
    }

    /// Says that it lies in a context, too.
    pub(crate) fn is_also_in(&self, session: &Session, context: Context) {
        self.places().contexts.push((session.clone(), context));
    }

    /// Makes it stay where it lies until the pin is dropped: for as long as it takes to schedule what reads
    /// it there, or as something is linked to the place.
    pub(crate) fn pin(&self) -> Pin {
        self.places().pins += 1;
        Pin(self.clone())
    }

    /// Moves it away from a session's device, so that its memory there can be written: `copy` gives
    /// another place with the same value. It need not be anywhere there if it lies on the host. `false`
    /// where someone holds on to the place.
    pub(crate) fn move_away<E>(
        &self,
        session: &Session,
        copy: impl FnOnce(Context) -> Result<Context, E>,
    ) -> Result<bool, E> {
        let on_host = self.host().is_some();
        let mut places = self.places();
        if places.pins > 0 {
            return Ok(false);
        }
        let found = places
            .contexts
            .iter()
            .position(|(place, _)| place.same(session));
        let Some(at) = found else { return Ok(true) };
        if on_host || places.contexts.len() > 1 {
            places.contexts.swap_remove(at);
        } else {
            let place = places.contexts[at].1.clone();
            places.contexts[at].1 = copy(place)?;
        }
        Ok(true)
    }

    /// The value on the host.
    pub(crate) fn array(&self) -> Result<Arc<Array>, RuntimeError> {
        let _pin = self.pin();
        let mut host = self.host();
        if let Some(array) = &*host {
            return Ok(Arc::clone(array));
        }
        let context = self
            .places()
            .contexts
            .first()
            .map(|(_, context)| context.clone());
        let context = context.expect("a value is on the host or on a device");
        let array = context.read(VALUE)?;
        let array = Arc::new(array.expect("the context was made with the value"));
        Ok(Arc::clone(host.insert(array)))
    }

    /// Where it lies on a session's device; it is copied there if it does not, and the device works in memory of the host.
    pub(crate) fn placed(&self, session: &Session) -> Result<Option<Context>, RuntimeError> {
        if let Some(found) = self.on(session) {
            return Ok(Some(found));
        }
        if !session.device().limits().host_memory {
            return Ok(None);
        }
        let array = (*self.array()?).clone();
        let place = session.root().with_host(VALUE, array)?;
        self.is_also_in(session, place.clone());
        Ok(Some(place))
    }

    /// The value in memory of the host, where it lies if the device works there: what is held so stays as it is.
    pub(crate) fn lent(&self) -> Result<Arc<Array>, RuntimeError> {
        if let Some(array) = self.on_host() {
            return Ok(array);
        }
        let pin = self.pin();
        let context = self.places().contexts.first().map(|(_, c)| c.clone());
        let context = context.expect("a value is on the host or on a device");
        let bytes = context.node(VALUE).map_or(0, |node| node.bytes);
        if bytes < LENT {
            return self.array();
        }
        // SAFETY: a value is written again only where nobody holds it, and the pin does.
        match unsafe { context.in_place(VALUE, Box::new(pin)) }? {
            Some(array) => Ok(Arc::new(array)),
            None => self.array(),
        }
    }

    /// Where it lies, if that is memory of the host on one device alone, nobody else holds it, and nothing is still to use it;
    /// small values are not given so.
    pub(crate) fn exclusive(&self) -> Option<Exclusive> {
        if self.is_shared() || self.on_host().is_some() {
            return None;
        }
        let pin = self.pin();
        let context = match &*self.places() {
            Places { contexts, pins: 1 } if contexts.len() == 1 => contexts[0].1.clone(),
            _ => return None,
        };
        let bytes = context.node(VALUE).map_or(0, |node| node.bytes);
        if bytes < LENT {
            return None;
        }
        Some(Exclusive {
            address: context.idle_address(VALUE)?,
            bytes,
            _pin: pin,
        })
    }

    /// The value on the host, if it lies there.
    pub(crate) fn on_host(&self) -> Option<Arc<Array>> {
        self.host().clone()
    }

    /// Says that its memory on a session's device has a new value: it is nowhere else any more.
    pub(crate) fn is_overwritten(&self, session: &Session) {
        *self.host() = None;
        self.places()
            .contexts
            .retain(|(place, _)| place.same(session));
    }

    /// Overwrites its memory on a session's device with another value; `false` where it has none there, or
    /// someone else holds it.
    pub(crate) fn fill(&self, session: &Session, from: &Buffer) -> Result<bool, RuntimeError> {
        if self.is_shared() {
            return Ok(false);
        }
        let Some(place) = self.on(session) else {
            return Ok(false);
        };
        from.copy_to(session, &place)?;
        self.is_overwritten(session);
        Ok(true)
    }

    /// Copies it to the array [`VALUE`] of a context on a session's device.
    pub(crate) fn copy_to(&self, session: &Session, to: &Context) -> Result<(), RuntimeError> {
        if let Some(array) = self.on_host() {
            to.upload(VALUE, array)?;
            return Ok(());
        }
        let _pin = self.pin();
        match self.on(session).or_else(|| self.beside(session)) {
            Some(found) => to.copy_from(VALUE, &found)?,
            None => to.upload(VALUE, self.array()?)?,
        };
        Ok(())
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
