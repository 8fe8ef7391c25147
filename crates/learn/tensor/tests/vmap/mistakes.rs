//! Mistakes, each with what is said about it.

use crate::numeric::random;
use loopwright_tensor::{Tensor, TensorError, Variable, random as numbers, vmap, while_loop};

#[track_caller]
fn says<T>(outcome: Result<T, TensorError>, expected: &str) {
    match outcome {
        Ok(_) => panic!("it went well, and should say {expected}"),
        Err(error) => {
            assert_eq!(error.kind().to_string(), expected);
            assert!(error.place().file().ends_with("mistakes.rs"), "{error}");
        }
    }
}

fn sum((a, b): &(Tensor, Tensor)) -> Tensor {
    a + b
}

#[test]
fn axes_that_do_not_do() {
    let (a, b) = (random(&[3, 2], 1), random(&[4, 2], 2));
    let both = (a.clone(), b.clone());
    says(
        vmap(sum).call(&both),
        "`vmap`: mapped axes have one size: it is 3 in argument 0, [3, 2], and 4 in argument 1, [4, 2]",
    );
    says(
        vmap(sum).over([Some(2), Some(0)]).call(&both),
        "`vmap` of [3, 2]: there is no axis 2; it has axes 0 to 1",
    );
    says(
        vmap(sum).over([None, Some("batch")]).call(&both),
        "`vmap` of [4, 2]: there is no axis `batch`; its axes have no names",
    );
    says(
        vmap(sum).over_named("batch").call(&both),
        "`vmap`: no argument has an axis `batch`",
    );
    says(
        vmap(sum).over([Some(0)]).call(&both),
        "`vmap`: axes are given for 1 tensors, and the arguments have 2",
    );
    says(
        vmap(sum).call(&(a.clone(), Tensor::scalar(1.0))),
        "`vmap` of []: there is no axis 0; it has none",
    );
    let nothing = "`vmap`: nothing is mapped; give at least one argument an axis, or call the function itself";
    says(vmap(sum).over([None::<i64>, None]).call(&both), nothing);
    says(vmap(|_: &()| Tensor::scalar(1.0)).call(&()), nothing);
    says(
        vmap(Tensor::exp).to(2).call(&a),
        "`vmap` of [2]: the mapped axis of a result stands at a place from 0 to 1, not 2",
    );
    says(
        vmap(Tensor::exp).to_each([0, 0]).call(&a),
        "`vmap`: places are given for 2 results, and the function gives 1",
    );
    says(
        vmap(|x: &Tensor| x.named(["batch"])).call(&a.named(["batch", "i"])),
        "`vmap` of [batch 2]: the mapped axis is called `batch`, and so is one of the result for a single example; rename one",
    );
}

#[test]
fn mistakes_of_the_function() {
    let x = random(&[3, 2], 3);
    // Shapes are those of one example.
    says(
        vmap(|x: &Tensor| x + Tensor::from([1.0f64, 2.0, 3.0])).call(&x),
        "`add` of [2] and [3]: axis 0 of the first, of size 2, meets axis 0 of the second, of size 3; sizes that meet are equal, or one of them is 1",
    );
    let failed = &x + Tensor::from([1.0f64, 2.0, 3.0]);
    assert!(vmap(Tensor::exp).call(&failed).is_err());
}

#[test]
fn variables_are_not_set() {
    let count = Variable::new(&Tensor::from([0.0f64, 0.0]));
    let x = random(&[3, 2], 4);
    let refused = "`set`: a variable cannot be set in a function that `vmap` maps, where it would have a value for each example; give the value back as a result, and set the variable outside";
    let set = vmap(|x: &Tensor| {
        count.set(x)?;
        Ok(x.clone())
    });
    says(set.call(&x), refused);
    let generator = numbers::Generator::new(1);
    let drawn = vmap(|x: &Tensor| x * numbers::uniform(&generator.key(), [2], x.dtype()));
    says(drawn.call(&x), refused);
    // It is as it was, and can be set again.
    count.set(&(count.get() + 1.0)).unwrap();
    assert_eq!(count.get().to_f64().unwrap(), [1.0, 1.0]);
}

#[test]
fn values_are_not_known() {
    let x = random(&[3], 5);
    let asked = "the value of a tensor was asked for while `vmap` was traced, where it is not known yet; use `select`, `scan` or `while_loop` for what depends on values";
    says(
        vmap(|x: &Tensor| x.item().map(|value| x * value)).call(&x),
        asked,
    );
    let looped = vmap(|x: &Tensor| while_loop(x, |x| x.lt(10.0), |x| x * 2.0));
    says(
        looped.call(&x),
        "`while_loop`: it computes values, which are not known while `vmap` is traced; `repeat_at_most` becomes a part of it, or call this outside of the function",
    );
}
