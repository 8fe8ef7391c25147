//! A bounded queue between one thread that pushes and one that pops.
//!
//! A ring of slots and two counters; neither side takes a lock unless the other sleeps. What is pushed
//! is popped in that order or dropped with the queue, never lost: a producer that finds the ring full
//! waits for space.
//!
//! ```
//! use loopwright_threads::queue::bounded;
//! use std::num::NonZero;
//!
//! let (mut producer, mut consumer) = bounded(NonZero::new(4).expect("not zero"));
//! let summing = std::thread::spawn(move || {
//!     let mut sum = 0;
//!     while let Some(item) = consumer.pop() {
//!         sum += item;
//!     }
//!     sum
//! });
//! for item in 0..100 {
//!     producer.push(item).expect("the consumer is there");
//! }
//! drop(producer);
//! assert_eq!(summing.join().expect("no panic"), 4950);
//! ```

use crate::lines::Lines;
use crate::park::Parker;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Ordering, Sleeper, UnsafeCell};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::num::NonZero;

struct Ring<T> {
    /// As many as a power of two; position `p` is in slot `p` modulo that.
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// Where the next item is popped. Written by the consumer. Counts on, wrapping around.
    head: Lines<AtomicUsize>,
    /// Where the next item is pushed. Written by the producer. Never more than the slots ahead of `head`.
    tail: Lines<AtomicUsize>,
    consumer: Lines<Side>,
    producer: Lines<Side>,
}

/// How long a side lets the other go on, so that they do not take a line from each other for every item.
/// About a quarter of a microsecond: ten items, and not much beside a wait.
const BATCH_PAUSES: u32 = 16;

/// The longest that a consumer lets items gather: about a microsecond, and only while items keep coming.
const MOST_PAUSES: u32 = 64;

/// Items that come in a row are there after so few looks.
const SOON_LOOKS: u32 = 8;

/// Where items turn out to come one by one, the next so many waits are not used to find out again.
const RESTS: u32 = 64;

/// So many items at a time make the trade of a line for each batch cheap.
const GOOD_BATCH: usize = 8;

/// What one side shows the other.
struct Side {
    parker: Parker,
    gone: AtomicBool,
}

impl Side {
    fn new(sleeper: Sleeper) -> Lines<Side> {
        Lines(Side {
            parker: Parker::new(sleeper),
            gone: AtomicBool::new(false),
        })
    }
}

// SAFETY: the slots are what is not `Sync`. A slot is written by the producer alone, before `tail`
// passes it, and read by the consumer alone, before `head` passes it; items only move, hence `Send`.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: as above; without sharing there is nothing but owned items.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Ring<T> {
    fn slot(&self, position: usize) -> &UnsafeCell<MaybeUninit<T>> {
        &self.slots[position & (self.slots.len() - 1)]
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let tail = self.tail.0.load(Ordering::Relaxed);
        let mut head = self.head.0.load(Ordering::Relaxed);
        while head != tail {
            self.slot(head).with_mut(|slot| {
                // SAFETY: both sides are gone, and slots from `head` to `tail` hold items.
                unsafe { (*slot).assume_init_drop() }
            });
            head = head.wrapping_add(1);
        }
    }
}

/// A queue of at least that many items (the next power of two), by its two ends.
///
/// # Panics
/// Where the slots would be more than the address space holds.
pub fn bounded<T: Send>(capacity: NonZero<usize>) -> (Producer<T>, Consumer<T>) {
    let slots = capacity
        .get()
        .checked_next_power_of_two()
        .expect("a ring larger than half the address space cannot be allocated");
    let ring = Arc::new(Ring {
        slots: (0..slots)
            .map(|_| UnsafeCell::new(MaybeUninit::uninit()))
            .collect(),
        head: Lines(AtomicUsize::new(0)),
        tail: Lines(AtomicUsize::new(0)),
        consumer: Side::new(Sleeper::Consumer),
        producer: Side::new(Sleeper::Producer),
    });
    let producer = Producer {
        ring: Arc::clone(&ring),
        tail: 0,
        head: 0,
    };
    let consumer = Consumer {
        ring,
        head: 0,
        tail: 0,
        gathers: 0,
        rests: 0,
    };
    (producer, consumer)
}

/// The end that pushes.
pub struct Producer<T> {
    ring: Arc<Ring<T>>,
    tail: usize,
    /// The consumer's position when last looked at.
    head: usize,
}

impl<T> Producer<T> {
    /// How many items fit.
    pub fn capacity(&self) -> usize {
        self.ring.slots.len()
    }

    /// Whether [`push`](Producer::push) would have to wait now.
    pub fn is_full(&mut self) -> bool {
        if self.tail.wrapping_sub(self.head) == self.capacity() {
            self.head = self.ring.head.0.load(Ordering::Acquire);
        }
        self.tail.wrapping_sub(self.head) == self.capacity()
    }

    /// Puts an item behind the others, after waiting for space where there is none.
    ///
    /// # Errors
    /// The item, where the consumer is gone.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        let ring = &*self.ring;
        let consumer_gone = || ring.consumer.0.gone.load(Ordering::Acquire);
        if self.tail.wrapping_sub(self.head) == ring.slots.len() {
            let full = self.head;
            let moved = || ring.head.0.load(Ordering::Acquire) != full || consumer_gone();
            // There is no hurry with a full queue: rather some slots at once than the line of `head` for
            // each.
            ring.producer.0.parker.wait_pausing(|| BATCH_PAUSES, moved);
            self.head = ring.head.0.load(Ordering::Acquire);
        }
        if consumer_gone() {
            return Err(item);
        }
        ring.slot(self.tail).with_mut(|slot| {
            // SAFETY: fewer items than slots lie between `head` and `tail`, so the consumer is done with
            // this slot, which the acquiring load of `head` ordered before; there is one producer.
            unsafe { (*slot).write(item) };
        });
        self.tail = self.tail.wrapping_add(1);
        ring.tail.0.store(self.tail, Ordering::Release);
        ring.consumer.0.parker.wake();
        Ok(())
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.ring.producer.0.gone.store(true, Ordering::Release);
        self.ring.consumer.0.parker.wake();
    }
}

/// The end that pops.
pub struct Consumer<T> {
    ring: Arc<Ring<T>>,
    head: usize,
    /// The producer's position when last looked at.
    tail: usize,
    /// How long items are let gather before the first look, while they come in a row; 0 while they do not.
    gathers: u32,
    /// How many waits pass before gathering is tried again.
    rests: u32,
}

impl<T> Consumer<T> {
    /// Learns from a wait that ended with so many items after so many looks whether items come in a row, so
    /// that some may gather before the next look, or one by one, each to be run at once.
    fn pace(&mut self, looks: u32, items: usize) {
        if self.gathers == 0 {
            self.rests = self.rests.saturating_sub(1);
            if looks <= SOON_LOOKS && self.rests == 0 {
                self.gathers = BATCH_PAUSES;
            }
        } else if looks > 1 || items == 1 {
            // None had gathered, or one, for which the one who pushed it may be waiting.
            self.gathers = 0;
            self.rests = RESTS;
        } else if items < GOOD_BATCH {
            self.gathers = (self.gathers * 2).min(MOST_PAUSES);
        }
    }

    /// Takes the oldest item, after waiting for one where there is none. Nothing, where the queue is
    /// empty and the producer gone.
    pub fn pop(&mut self) -> Option<T> {
        let ring = &*self.ring;
        if self.head == self.tail {
            let empty = self.tail;
            let tail = || ring.tail.0.load(Ordering::Acquire);
            let moved = || tail() != empty || ring.producer.0.gone.load(Ordering::Acquire);
            let looks = Cell::new(0u32);
            let pauses = || {
                looks.set(looks.get() + 1);
                match looks.get() {
                    1 => self.gathers.max(1),
                    _ => 1,
                }
            };
            ring.consumer.0.parker.wait_pausing(pauses, moved);
            // Read after `gone`: what was pushed before the producer went is seen.
            self.tail = tail();
            let items = self.tail.wrapping_sub(empty);
            if items == 0 {
                return None;
            }
            self.pace(looks.get(), items);
        }
        let ring = &*self.ring;
        let item = ring.slot(self.head).with(|slot| {
            // SAFETY: the slot is between `head` and `tail`, so it holds an item, whose writing the
            // acquiring load of `tail` ordered before; `head` passes it now, so it is read once.
            unsafe { (*slot).assume_init_read() }
        });
        self.head = self.head.wrapping_add(1);
        ring.head.0.store(self.head, Ordering::Release);
        ring.producer.0.parker.wake();
        Some(item)
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.ring.consumer.0.gone.store(true, Ordering::Release);
        self.ring.producer.0.parker.wake();
    }
}
