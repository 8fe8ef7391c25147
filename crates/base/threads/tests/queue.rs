//! The queue of items on threads of the system.

use loopwright_threads::queue::bounded;
use std::num::NonZero;
use std::sync::Arc;

fn size(size: usize) -> NonZero<usize> {
    NonZero::new(size).expect("not zero")
}

#[test]
fn items_arrive_in_order_through_any_capacity() {
    for capacity in [1, 2, 3, 1024] {
        let (mut producer, mut consumer) = bounded(size(capacity));
        assert_eq!(producer.capacity(), capacity.next_power_of_two());
        let consuming =
            std::thread::spawn(move || std::iter::from_fn(|| consumer.pop()).collect::<Vec<_>>());
        for item in 0..10_000 {
            producer
                .push(Box::new(item))
                .expect("the consumer is there");
        }
        drop(producer);
        let items = consuming.join().expect("no panic");
        assert!(
            items.into_iter().map(|item| *item).eq(0..10_000),
            "capacity {capacity}"
        );
    }
}

#[test]
fn a_full_queue_says_so() {
    let (mut producer, mut consumer) = bounded(size(2));
    assert!(!producer.is_full());
    assert_eq!((producer.push(1), producer.push(2)), (Ok(()), Ok(())));
    assert!(producer.is_full());
    assert_eq!(consumer.pop(), Some(1));
    assert!(!producer.is_full());
}

#[test]
fn an_item_for_nobody_comes_back() {
    let (mut producer, consumer) = bounded(size(2));
    drop(consumer);
    assert_eq!(producer.push("item"), Err("item"));
}

#[test]
fn what_nobody_popped_is_dropped_once() {
    let counted = Arc::new(());
    let (mut producer, mut consumer) = bounded(size(4));
    for _ in 0..4 {
        producer
            .push(Arc::clone(&counted))
            .expect("the consumer is there");
    }
    drop(consumer.pop());
    assert_eq!(Arc::strong_count(&counted), 4);
    drop((producer, consumer));
    assert_eq!(Arc::strong_count(&counted), 1);
}
