//! Steps that are handed to other backends.

use loopwright_graph::{Graph, parse};
use loopwright_looptree::{
    LoopTree, Schedule, Storage, allocations, allocations_in_parts, parse_schedule, parse_tree,
    parts_by_delegate, print_schedule, print_tree,
};
use loopwright_text::Source;

const CHAIN: &str = "
loopwright program 1
input x: f32[i=4, delegate=3]
a = exp(x)
b = exp(a)
top = max[i, delegate](b)
output y = b - top
";

fn graph(text: &str) -> Graph {
    let source = Source::new("test.lw", text);
    let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    graph.with_stores()
}

fn read(graph: &Graph, lines: &str) -> Result<Schedule, String> {
    let source = Source::new("test", format!("loopwright schedule 1\n{lines}\n"));
    parse_schedule(&source, graph).map_err(|error| error.render(&source))
}

fn tree(graph: &Graph, lines: &str) -> LoopTree {
    let schedule = read(graph, lines).unwrap_or_else(|error| panic!("{error}"));
    LoopTree::new(graph, &schedule).unwrap()
}

#[test]
fn another_delegate_starts_new_outermost_loops() {
    let graph = graph(CHAIN);
    // A dimension may be called `delegate`: only `=` makes it the word.
    let lines = "a: i, delegate\n\
                 b: delegate=interp, i, delegate\n\
                 top: delegate=interp, i, delegate\n\
                 y: delegate=\"my-backend\", i, delegate";
    let found = tree(&graph, lines);
    let expected = "loopwright tree 1
for i {
  for delegate {
    a
  }
}
for i delegate=interp {
  for delegate {
    b
    top
  }
}
for i delegate=\"my-backend\" {
  for delegate {
    y
  }
}
";
    assert_eq!(print_tree(&graph, &found), expected);
    let again = parse_tree(&Source::new("tree", expected), &graph);
    assert_eq!(again.as_ref(), Ok(&found));
    let top = found.find(graph.find("top").unwrap()).unwrap();
    assert_eq!(found.delegate(top), Some("interp"));
    assert_eq!(found.delegate(found.root(top)), Some("interp"));
    assert_eq!(found.delegate(found.roots()[0]), None);
    let parts = parts_by_delegate(&found);
    let expected = [
        (0..1, None),
        (1..2, Some("interp".into())),
        (2..3, Some("my-backend".into())),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn neighbouring_subtrees_with_one_delegate_are_one_part() {
    let graph = graph(CHAIN);
    let lines = "a: delegate=interp, i, delegate\n\
                 b: delegate=interp, share=0, i, delegate\n\
                 top: share=0, i, delegate\n\
                 y: share=0, i, delegate";
    let found = tree(&graph, lines);
    assert_eq!(found.roots().len(), 4);
    let expected = [(0..2, Some("interp".into())), (2..4, None)];
    assert_eq!(parts_by_delegate(&found), expected);
    assert_eq!(parts_by_delegate(&LoopTree::default()), []);
}

#[test]
fn root_leaves_have_delegates() {
    let graph = graph("loopwright program 1\ninput x: f32\na = exp(x)\noutput y = exp(a)\n");
    let found = tree(&graph, "a: delegate=interp\ny:");
    let text = print_tree(&graph, &found);
    assert_eq!(text, "loopwright tree 1\na delegate=interp\ny\n");
    assert_eq!(
        parse_tree(&Source::new("tree", text), &graph).as_ref(),
        Ok(&found)
    );
}

#[test]
fn names_that_are_not_words_stand_in_quotes() {
    let graph = graph("loopwright program 1\ninput x: f32\noutput y = exp(x)\n");
    for (name, written) in [
        ("interp", "interp"),
        ("for", "for"),
        ("gpu.one", "gpu.one"),
        ("gpu.", "\"gpu.\""),
        ("my-backend", "\"my-backend\""),
        ("2nd", "\"2nd\""),
        ("two words", "\"two words\""),
        ("a # b", "\"a # b\""),
        ("é", "\"é\""),
        ("\"\\\n\t", r#""\"\\\n\t""#),
    ] {
        let mut schedule = read(&graph, "y:").unwrap();
        schedule.steps[0].delegate = Some(name.into());
        let text = print_schedule(&graph, &schedule);
        let expected = format!("loopwright schedule 1\ny: delegate={written}\n");
        assert_eq!(text, expected);
        let source = Source::new("schedule", text);
        assert_eq!(parse_schedule(&source, &graph).unwrap(), schedule);
        let tree = LoopTree::new(&graph, &schedule).unwrap();
        let source = Source::new("tree", print_tree(&graph, &tree));
        assert_eq!(parse_tree(&source, &graph).unwrap(), tree);
    }
}

#[test]
fn delegates_that_are_wrong_say_why() {
    let graph = graph(CHAIN);
    for (line, expected) in [
        ("a: delegate=\"\", i", "a backend's name is not empty"),
        (
            "a: delegate=x, i, delegate=y",
            "a delegate is named already: delegate=x",
        ),
        ("a: delegate=, i", "expected a backend's name, found `,`"),
        (
            "a: delegate=my-backend",
            "a name that is not a word stands in quotes: `delegate=\"my-backend\"`",
        ),
    ] {
        let error = read(&graph, line).unwrap_err();
        assert!(error.contains(expected), "{line}: {error}");
    }
    for (text, expected) in [
        (
            "for i {\n  a delegate=x\n}",
            "only an outermost loop or step is delegated",
        ),
        (
            "for i delegate=x delegate=y {\n  a\n}",
            "a delegate is named already: delegate=x",
        ),
        ("a delegate=\"\"", "a backend's name is not empty"),
    ] {
        let source = Source::new("tree", format!("loopwright tree 1\n{text}\n"));
        let error = parse_tree(&source, &graph).unwrap_err().render(&source);
        assert!(error.contains(expected), "{text}: {error}");
    }
    let mut nameless = read(&graph, "b: i, delegate\ntop: i, delegate\ny: i, delegate").unwrap();
    nameless.steps[0].delegate = Some("".into());
    let error = LoopTree::new(&graph, &nameless).unwrap_err().to_string();
    assert_eq!(error, "`b` is delegated to a backend without a name");
}

#[test]
fn what_crosses_to_another_backend_is_in_memory() {
    let graph = graph(CHAIN);
    let storage = |lines: &str, name: &str| {
        let schedule = read(&graph, lines).unwrap();
        let tree = LoopTree::new(&graph, &schedule).unwrap();
        allocations(&graph, &schedule, &tree).unwrap()[&graph.find(name).unwrap()].storage
    };
    let own = "b: i, delegate\ntop: i, delegate\ny: i, delegate";
    assert_eq!(storage(own, "b"), Storage::Private);
    assert_eq!(storage(own, "top"), Storage::Private);
    let apart = "b: delegate=interp, i, delegate\n\
                 top: delegate=interp, i, delegate\n\
                 y: i, delegate";
    assert_eq!(storage(apart, "b"), Storage::Scratch);
    assert_eq!(storage(apart, "top"), Storage::Scratch);
    // `a` is read only where it is computed.
    let kept = format!("a: delegate=interp, i, delegate\n{apart}");
    assert_eq!(storage(&kept, "a"), Storage::Private);
    assert_eq!(storage(&kept, "b"), Storage::Scratch);
    // Parts need not be those of the delegates.
    let schedule = read(&graph, own).unwrap();
    let tree = LoopTree::new(&graph, &schedule).unwrap();
    let held = allocations_in_parts(&graph, &schedule, &tree, &[0..1, 1..2]).unwrap();
    assert_eq!(held[&graph.find("top").unwrap()].storage, Storage::Scratch);
    assert_eq!(held[&graph.outputs()[0].node].storage, Storage::Output(0));
}
