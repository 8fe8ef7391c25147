//! Mistakes that users make, each with all of its message. `BLESS=1` writes what is said now into
//! `tests/mistakes.txt`.

use loopwright_interp as _;
use loopwright_tensor::random::{self, Key};
use loopwright_tensor::{
    Axis, ConvOptions, DType, Einsum, Op, PoolOptions, ReduceOp, Session, Slice, Tensor,
    TensorError, Variable, Window, adaptive_avg_pool, avg_pool, concat, conv, conv_transpose,
    einsum, fft, jit, linalg, max_pool, select, stack, unknown,
};

fn of(shape: &[usize]) -> Tensor {
    Tensor::ones(shape, DType::F32)
}

fn ints(shape: &[usize]) -> Tensor {
    Tensor::ones(shape, DType::I64)
}

type Mistake = (&'static str, fn() -> Result<Tensor, TensorError>);

/// What is wrong, and a program that does it.
const MISTAKES: &[Mistake] = &[
    ("sizes that do not meet", || Ok(of(&[2, 3]) + of(&[4]))),
    ("named sizes that do not meet", || {
        Ok(of(&[2]).named(["i"]) * of(&[3]).named(["i"]))
    }),
    ("names beside none", || Ok(of(&[2]).named(["i"]) + of(&[2]))),
    ("dtypes that differ", || Ok(of(&[2]) + ints(&[2]))),
    ("a dtype without the op", || Ok(ints(&[2]).exp())),
    ("bits of floats", || Ok(of(&[2]) & of(&[2]))),
    ("a fraction beside integers", || Ok(ints(&[2]) * 0.5)),
    ("a condition that is no bool", || {
        Ok(select(&of(&[2]), &of(&[2]), &of(&[2])))
    }),
    ("select of two dtypes", || {
        let condition = of(&[2]).gt(&Tensor::scalar(0.0));
        Ok(select(&condition, &of(&[2]), &ints(&[2])))
    }),
    ("bits as a wider dtype", || Ok(of(&[2]).bitcast(DType::F64))),
    ("an axis that is not there", || Ok(of(&[2, 3]).sum(2))),
    ("an axis before the first", || Ok(of(&[2, 3]).max(-3))),
    ("an axis of a number", || Ok(Tensor::scalar(1.0).sum(0))),
    ("a name that is not there", || {
        Ok(of(&[2, 3]).named(["rows", "columns"]).sum("column"))
    }),
    (
        "a name where there are none",
        || Ok(of(&[2, 3]).sum("rows")),
    ),
    ("an axis twice", || Ok(of(&[2, 3]).sum([1, -1]))),
    ("a sum of bools", || Ok(of(&[2]).is_nan().sum(..))),
    ("any of numbers", || Ok(of(&[2]).any(..))),
    ("a mean of integers", || Ok(ints(&[2]).mean(..))),
    ("a softmax of integers", || Ok(ints(&[2]).softmax(0))),
    ("a reshape to another count", || {
        Ok(of(&[2, 3]).reshape([4, 2]))
    }),
    ("a reshape that does not divide", || {
        let rest = loopwright_tensor::Size::from(unknown("rest"));
        Ok(of(&[2, 3]).reshape(vec![4usize.into(), rest]))
    }),
    ("a split that does not fit", || {
        Ok(of(&[2, 6]).split_axis(1, [4, 2]))
    }),
    ("axes merged backwards", || {
        Ok(of(&[2, 3, 4]).merge_axes(2, 0))
    }),
    ("a permutation that leaves one out", || {
        Ok(of(&[2, 3, 4]).permute([1, 0]))
    }),
    ("a squeeze of what is long", || Ok(of(&[2, 3]).squeeze(1))),
    ("an axis too far behind", || Ok(of(&[2, 3]).unsqueeze(4))),
    ("too few names", || Ok(of(&[2, 3]).named(["i"]))),
    ("one name twice", || Ok(of(&[2, 3]).named(["i", "i"]))),
    ("repeated to a smaller shape", || {
        Ok(of(&[2, 3]).broadcast_to([3]))
    }),
    ("repeated to a shape that differs", || {
        Ok(of(&[2, 3]).broadcast_to([5, 2, 4]))
    }),
    (
        "an element that is not there",
        || Ok(of(&[2, 3]).at((0, 3))),
    ),
    ("more indices than axes", || Ok(of(&[2, 3]).at((0, 0, 0)))),
    ("a step of 0", || Ok(of(&[4]).at(Slice::All.step(0)))),
    (
        "a part that is too long",
        || Ok(of(&[2, 3]).narrow(1, 1, 3)),
    ),
    ("a mask of another size", || {
        let mask = of(&[3]).gt(&Tensor::scalar(0.0));
        Ok(of(&[2, 3]).at(&mask))
    }),
    ("an index of floats", || Ok(of(&[4, 2]).take(&of(&[3]), 0))),
    ("lines that do not go together", || {
        Ok(of(&[4, 2]).take_along(&ints(&[3, 2]), 1))
    }),
    ("updates of another dtype", || {
        Ok(of(&[4]).scatter(&ints(&[2]), &ints(&[2]), 0, Some(ReduceOp::Sum)))
    }),
    ("updates of another shape", || {
        Ok(of(&[4]).scatter(&ints(&[2]), &of(&[3]), 0, Some(ReduceOp::Sum)))
    }),
    ("classes of floats", || Ok(of(&[4]).one_hot(3, DType::F32))),
    ("a product with other inner sizes", || {
        Ok(of(&[2, 3]).matmul(&of(&[4, 5])))
    }),
    ("a product with a number", || {
        Ok(of(&[2, 3]).matmul(&Tensor::scalar(2.0)))
    }),
    ("a product of two dtypes", || {
        Ok(of(&[2, 3]).matmul(&ints(&[3, 2])))
    }),
    ("a product of batches that differ", || {
        Ok(of(&[2, 3, 4]).matmul(&of(&[5, 4, 3])))
    }),
    ("joined with other sizes", || {
        Ok(concat(&[&of(&[2, 3]), &of(&[2, 4])], 0))
    }),
    ("joined with another dtype", || {
        Ok(concat(&[&of(&[2]), &ints(&[2])], 0))
    }),
    ("nothing joined", || Ok(concat(&[], 0))),
    ("stacked with another shape", || {
        Ok(stack(&[&of(&[2]), &of(&[3])], 0))
    }),
    ("elements that do not fill a shape", || {
        Ok(Tensor::new(&[1.0f32, 2.0, 3.0], [2, 2]))
    }),
    ("a value that the dtype does not hold", || {
        Ok(Tensor::full([2], 300, DType::U8))
    }),
    ("a range without a step", || Ok(Tensor::arange(0, 4, 0))),
    ("padding of another dtype", || {
        Ok(ints(&[3]).pad(0, 1, 1, 0.5))
    }),
    ("more taken off than there is", || {
        Ok(of(&[3]).pad(0, -2, -2, 0.0))
    }),
    ("a window that does not fit", || {
        Ok(of(&[3]).window(0, &Window::new(5usize), None))
    }),
    ("a window without a stride", || {
        Ok(of(&[3]).window(0, &Window::new(2usize).stride(0), None))
    }),
    ("a window's padding without a value", || {
        Ok(of(&[3]).window(0, &Window::new(2usize).padding(1), None))
    }),
    ("a diagonal of a line", || Ok(of(&[3]).diagonal())),
    ("a gradient of several numbers", || {
        let x = of(&[3]);
        let [dx] = (&x * &x).gradients([&x]);
        Ok(dx)
    }),
    ("a gradient of integers", || {
        let x = ints(&[3]);
        let [dx] = x.sum(..).gradients([&x]);
        Ok(dx)
    }),
    ("a weight of another shape", || {
        let x = of(&[3]);
        Ok((&x * &x).vjp(&of(&[2]), &[&x]).remove(0))
    }),
    ("directions for other tensors", || {
        let x = of(&[3]);
        Ok((&x * &x).jvp(&[&x], &[]))
    }),
    ("a gradient of its own with another shape", || {
        let x = of(&[3]);
        let y = x.exp().with_gradient(&[&x], |_, _, _| vec![of(&[2])]);
        let [dx] = y.sum(..).gradients([&x]);
        Ok(dx)
    }),
    ("a size that nobody said", || {
        let w = Tensor::zeros([unknown("the input of dense `first`")], DType::F32);
        Ok(w.sum(..))
    }),
    ("a size that is said in two ways", || {
        let size = unknown("the hidden size");
        let w = Tensor::zeros([size], DType::F32);
        let first = &w + of(&[3]);
        Ok(first.sum(..) + (&w + of(&[4])).sum(..))
    }),
    ("one number of several", || {
        of(&[3]).item().map(Tensor::scalar)
    }),
    ("elements of another type", || {
        of(&[3]).to_vec::<f64>().map(Tensor::from)
    }),
    ("a value while a function is traced", || {
        let looks = jit("looks", |x: &Tensor| -> Result<Tensor, TensorError> {
            Ok(if x.sum(..).item()? > 0.0 {
                x.clone()
            } else {
                -x
            })
        });
        looks.call(&of(&[3]))
    }),
    ("a variable of another shape", || {
        let variable = Variable::new(&of(&[3]));
        variable.set(&of(&[4])).map(|()| variable.get())
    }),
    ("a variable of another dtype", || {
        let variable = Variable::new(&of(&[3]));
        variable.set(&ints(&[3])).map(|()| variable.get())
    }),
    ("a convolution with other channels", || {
        Ok(conv(
            &of(&[1, 3, 8, 8]),
            &of(&[4, 2, 3, 3]),
            &ConvOptions::default(),
        ))
    }),
    ("a kernel without axes", || {
        Ok(conv(&of(&[1, 3, 8]), &of(&[4, 3]), &ConvOptions::default()))
    }),
    ("a kernel that is too large", || {
        Ok(conv(
            &of(&[1, 3, 4]),
            &of(&[4, 3, 5]),
            &ConvOptions::default(),
        ))
    }),
    ("groups that do not divide", || {
        Ok(conv(
            &of(&[1, 4, 8]),
            &of(&[3, 2, 3]),
            &ConvOptions::default().groups(2),
        ))
    }),
    ("strides for other axes", || {
        Ok(conv(
            &of(&[1, 3, 8]),
            &of(&[4, 3, 3]),
            &ConvOptions::default().stride([1, 2]),
        ))
    }),
    ("a transposed convolution with other channels", || {
        Ok(conv_transpose(
            &of(&[1, 3, 8]),
            &of(&[4, 3, 3]),
            &ConvOptions::default(),
        ))
    }),
    ("a pool with too much padding", || {
        Ok(max_pool(&of(&[1, 8]), &PoolOptions::new([2]).padding(2)))
    }),
    ("means of integers", || {
        Ok(avg_pool(&ints(&[1, 8]), &PoolOptions::new([2])))
    }),
    ("parts of an axis of unknown size", || {
        let x = Tensor::zeros([unknown("the width")], DType::F32);
        Ok(adaptive_avg_pool(&x, &[2]))
    }),
    ("an einsum with sizes that differ", || {
        Ok(einsum("ij,jk->ik", &[&of(&[2, 3]), &of(&[4, 5])]))
    }),
    ("an einsum of too few operands", || {
        Ok(einsum("ij,jk->ik", &[&of(&[2, 3])]))
    }),
    ("an einsum with an unknown sign", || {
        Ok(einsum("i;j->ij", &[&of(&[2])]))
    }),
    ("an einsum whose result is in no operand", || {
        Ok(einsum("i->ij", &[&of(&[2])]))
    }),
    ("an einsum with a size for nobody", || {
        Ok(Einsum::new("i->i").size("k", 2).of(&[&of(&[2])]))
    }),
    ("an einsum of bools", || {
        let mask = of(&[2]).gt(&Tensor::scalar(0.0));
        Ok(Einsum::new("i,i->")
            .with(ReduceOp::Sum, Op::And)
            .of(&[&mask, &mask]))
    }),
    ("a probability above 1", || {
        Ok(random::bernoulli(&Key::new(1), [2], 1.5))
    }),
    ("random integers as floats", || {
        Ok(random::uniform(&Key::new(1), [2], DType::I64))
    }),
    ("no integers to draw", || {
        Ok(random::randint(&Key::new(1), [2], 3, 3))
    }),
    ("a key of a float", || {
        Ok(random::bits(&Key::of(&Tensor::scalar(1.0)), [2]))
    }),
    ("an inverse of a wide matrix", || {
        Ok(linalg::inverse(&of(&[2, 3])))
    }),
    ("a system with another right side", || {
        Ok(linalg::solve(&of(&[3, 3]), &of(&[2])))
    }),
    ("a transform of integers", || {
        Ok(fft::rfft(&ints(&[4]), 0).re)
    }),
    ("a transform along a missing axis", || {
        Ok(fft::rfft(&of(&[4]), 1).re)
    }),
    ("two axes of one name from a gather", || {
        let table = of(&[4, 2]).named(["rows", "i"]);
        let index = Tensor::index(Axis::named("i", 3));
        Ok(table.take(&index, "rows"))
    }),
];

/// The lines of a message without the numbers of lines.
fn message(mistake: &Mistake) -> String {
    let made = (mistake.1)().and_then(|tensor| tensor.realize());
    let error = match made {
        Ok(()) => return format!("{}\n  (no mistake was found)\n", mistake.0),
        Err(error) => error.to_string(),
    };
    let lines = error
        .lines()
        .map(|line| match line.trim_start().strip_prefix("at ") {
            Some(place) => {
                let (file, number) = place.rsplit_once(':').unwrap_or((place, ""));
                assert!(number.parse::<u32>().is_ok(), "{line}");
                format!("  at {file}")
            }
            None => line.to_owned(),
        });
    let lines: Vec<String> = lines.map(|line| format!("  {line}\n")).collect();
    format!("{}\n{}", mistake.0, lines.concat())
}

#[test]
fn every_mistake_has_its_message() {
    let session = Session::new("interp").unwrap();
    let found: Vec<String> = session.scope(|| MISTAKES.iter().map(message).collect());
    let found = found.join("\n");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mistakes.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    for (found, expected) in found.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(found.trim_end(), expected.trim_end());
    }
    assert_eq!(found, expected);
    assert!(!found.contains("no mistake was found"), "{found}");
    // The caller's line, never one of the library.
    assert!(!found.contains("tensor/src/"), "{found}");
    assert!(MISTAKES.len() >= 45);
}
