//! Circles of imports among the files of a crate.
//!
//! A file and the files in the folder beside it are one module: what these take from it makes no circle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::packages::Package;
use super::tree::Tree;

/// Circles in the crates of the packages.
pub fn violations(packages: &[Package]) -> Vec<String> {
    let trees = packages
        .iter()
        .flat_map(|package| &package.targets)
        .map(|target| &target.tree);
    let mut found = Vec::new();
    for tree in trees {
        for circle in circles(tree) {
            let files = circle
                .iter()
                .chain(circle.first())
                .map(|module| tree.modules[*module].file.display().to_string());
            let files: Vec<_> = files.collect();
            found.push(format!("a circle of imports: {}", files.join(" -> ")));
        }
    }
    found
}

type Graph = BTreeMap<usize, BTreeSet<usize>>;

/// The shortest circle through each file that is in one, no file in two of them: indices of modules, in order.
fn circles(tree: &Tree) -> Vec<Vec<usize>> {
    let mut graph = graph(tree);
    let mut found = Vec::new();
    for start in 0..tree.modules.len() {
        if let Some(circle) = shortest(&graph, start) {
            for module in &circle {
                graph.remove(module);
            }
            found.push(circle);
        }
    }
    found
}

/// Which files each file names outside its tests.
fn graph(tree: &Tree) -> Graph {
    let mut graph = Graph::new();
    for (at, module) in tree.modules.iter().enumerate() {
        let files = module
            .code()
            .named()
            .filter_map(|path| tree.resolve(at, path));
        let above = |file: usize| module.path.starts_with(&tree.modules[file].path);
        let counted = files.filter(|file| !above(*file));
        graph.insert(at, counted.collect());
    }
    graph
}

/// The shortest way from a file back to it.
fn shortest(graph: &Graph, start: usize) -> Option<Vec<usize>> {
    let mut ways = VecDeque::from([vec![start]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for next in graph.get(way.last()?).into_iter().flatten() {
            if *next == start {
                return Some(way);
            }
            if graph.contains_key(next) && seen.insert(*next) {
                ways.push_back(way.iter().copied().chain([*next]).collect());
            }
        }
    }
    None
}
