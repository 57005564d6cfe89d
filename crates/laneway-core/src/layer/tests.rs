//! Tables of layers, and random ones against a tree of files in memory.

use proptest::prelude::*;

use super::*;
use crate::definition::OnConflict;

type Entries = Vec<(&'static str, LayerEntry)>;

const OWN: Attributes = Attributes { mode: 0o644, modified: 0, owner: None };

fn file(content: &str) -> LayerEntry {
    let content = FileContent { hash: ContentHash::of(content.as_bytes()), place: ContentPlace::Blob };
    LayerEntry::File { attributes: OWN, size: 1, content }
}

fn directory() -> LayerEntry {
    LayerEntry::Directory { attributes: Attributes { mode: 0o755, ..OWN }, replaces: false }
}

fn symlink(target: &str) -> LayerEntry {
    LayerEntry::Symlink { attributes: OWN, target: target.into() }
}

/// With the ancestors of each path. What would stand below a path that is no directory is left out.
fn manifest(entries: &[(&str, LayerEntry)]) -> LayerManifest {
    let mut manifest = LayerManifest::default();
    let mut entries: Vec<_> = entries.to_vec();
    entries.sort_by(|one, other| Path::new(one.0).cmp(Path::new(other.0)));
    'entries: for (path, entry) in entries {
        let mut above: Vec<&Path> = Path::new(path).ancestors().skip(1).collect();
        above.pop();
        for above in above.into_iter().rev() {
            let there = manifest.entries.entry(above.to_owned()).or_insert_with(directory);
            if !there.is_directory() {
                continue 'entries;
            }
        }
        manifest.entries.insert(path.into(), entry);
    }
    manifest.assign_places();
    manifest
}

fn position(index: usize, after: &[usize]) -> LayerPosition {
    let step = ["a", "b", "c", "d", "e"][index].to_owned();
    LayerPosition { index, step, after: after.iter().copied().collect() }
}

/// Conflicts as `path!steps`, decisions as `path=step`, with `-` for a removal.
fn told(layers: &[(LayerPosition, LayerManifest)], on_conflict: &OnConflict) -> String {
    let ordered: Vec<OrderedLayer<'_>> =
        layers.iter().map(|(position, manifest)| OrderedLayer { position, manifest }).collect();
    let words: Vec<String> = match compose(&ordered, on_conflict) {
        Ok(composition) => {
            let one = |(path, decision): (&PathBuf, &Decision)| {
                let sign = if decision.entry == LayerEntry::Removed { '-' } else { '=' };
                format!("{}{sign}{}", path.display(), ordered[decision.layer].position.step)
            };
            composition.decisions.iter().map(one).collect()
        }
        Err(report) => report
            .conflicts
            .iter()
            .map(|conflict| format!("{}!{}", conflict.path.display(), conflict.steps.join("")))
            .collect(),
    };
    words.join(" ")
}

#[test]
fn unordered_layers_must_agree_and_ordered_ones_never_conflict() {
    let with_mode = LayerEntry::File {
        attributes: Attributes { mode: 0o755, ..OWN },
        size: 1,
        content: FileContent { hash: ContentHash::of(b"1"), place: ContentPlace::Blob },
    };
    let mut later = file("1");
    if let LayerEntry::File { attributes, .. } = &mut later {
        attributes.modified = 7;
    }
    let cases: Vec<(Entries, Entries, &str)> = vec![
        (vec![("x", file("1"))], vec![("y", file("2"))], ""),
        (vec![("x", file("1"))], vec![("x", file("1"))], ""),
        (vec![("x", file("1"))], vec![("x", later)], ""),
        (vec![("x", file("1"))], vec![("x", file("2"))], "x!ab"),
        (vec![("x", file("1"))], vec![("x", with_mode)], "x!ab"),
        (vec![("x", LayerEntry::Removed)], vec![("x", LayerEntry::Removed)], ""),
        (vec![("x", LayerEntry::Removed)], vec![("x", file("2"))], "x!ab"),
        (vec![("l", symlink("x"))], vec![("l", symlink("y"))], "l!ab"),
        (vec![("d/x", file("1"))], vec![("d/y", file("2"))], ""),
        (vec![("x", file("1"))], vec![("x/y", file("2"))], "x/y!ab"),
        (vec![("d", LayerEntry::Removed)], vec![("d/e/x", file("2"))], "d/e/x!ab"),
        (vec![("d", LayerEntry::Removed)], vec![("d", directory())], "d!ab"),
    ];
    for (one, other, expected) in cases {
        let (one, other) = (manifest(&one), manifest(&other));
        let unordered = [(position(0, &[]), one.clone()), (position(1, &[]), other.clone())];
        assert_eq!(told(&unordered, &OnConflict::Fail), expected, "{unordered:?}");
        let ordered = [(position(0, &[]), one), (position(1, &[0]), other)];
        assert_eq!(told(&ordered, &OnConflict::Fail), "");
    }
}

#[test]
fn step_that_had_both_decides_for_all_behind_it() {
    let (one, other) = (manifest(&[("x", file("1"))]), manifest(&[("x", file("2"))]));
    let with = |third: LayerManifest| {
        [(position(0, &[]), one.clone()), (position(1, &[]), other.clone()), (position(2, &[0, 1]), third)]
    };
    assert_eq!(told(&with(one.clone()), &OnConflict::Fail), "");
    assert_eq!(told(&with(manifest(&[("y", file("1"))])), &OnConflict::Fail), "x!ab");
    // Also where it left no file, but what hides the path.
    let below = [
        (position(0, &[]), manifest(&[("d/x", file("1"))])),
        (position(1, &[]), manifest(&[("d/x", file("2"))])),
        (position(2, &[0, 1]), manifest(&[("d", LayerEntry::Removed)])),
    ];
    assert_eq!(told(&below, &OnConflict::Fail), "");
}

#[test]
fn step_that_is_kept_decides_its_own_conflicts_and_no_others() {
    let layers = [
        (position(0, &[]), manifest(&[("x", file("1")), ("y", file("1")), ("d", LayerEntry::Removed)])),
        (position(1, &[]), manifest(&[("x", file("2")), ("d/f", file("2"))])),
        (position(2, &[]), manifest(&[("y", file("3"))])),
    ];
    let keep = |step: &str| OnConflict::Keep(step.to_owned());
    assert_eq!(told(&layers, &OnConflict::Fail), "d/f!ab x!ab y!ac");
    assert_eq!(told(&layers, &keep("b")), "y!ac");
    assert_eq!(told(&layers, &keep("c")), "d/f!ab x!ab");
    assert_eq!(told(&layers[..2], &keep("a")), "d-a x=a");
    assert_eq!(told(&layers[..2], &keep("b")), "d=b d/f=b x=b");
    let report = compose(
        &layers.each_ref().map(|(position, manifest)| OrderedLayer { position, manifest }),
        &keep("b"),
    );
    assert_eq!(
        report.expect_err("a conflict").to_string(),
        "steps that do not depend on each other changed the same files in different ways: y (a, c)"
    );
}

#[test]
fn manifest_that_leads_out_or_is_out_of_order_is_rejected() {
    let bytes_of = |entries: &[(&str, LayerEntry)]| {
        LayerManifest { entries: entries.iter().map(|(path, entry)| (path.into(), entry.clone())).collect() }
            .encode()
    };
    let long = "n".repeat(256);
    let deep = vec!["d"; MAX_DEPTH + 1].join("/");
    for path in ["..", "../x", "/etc/passwd", "a/../../x", ".", "./x", "x/", "x//y", "", &long, &deep, "a\0b"]
    {
        let decoded = LayerManifest::decode(&bytes_of(&[(path, file("1"))]));
        assert!(matches!(decoded, Err(ManifestError::Path { .. })), "{path:?}: {decoded:?}");
    }
    for entries in [
        vec![("d/x", file("1"))],
        vec![("d", file("1")), ("d/x", file("1"))],
        vec![("d", LayerEntry::Removed), ("d/x", file("1"))],
    ] {
        let decoded = LayerManifest::decode(&bytes_of(&entries));
        assert!(matches!(decoded, Err(ManifestError::Path { .. })), "{decoded:?}");
    }
    let whole = bytes_of(&[("a", file("1")), ("b", symlink("a"))]);
    assert!(LayerManifest::decode(&whole).is_ok());
    for end in 0..whole.len() {
        assert!(LayerManifest::decode(&whole[..end]).is_err(), "cut at {end}");
    }
    assert_eq!(LayerManifest::decode(&[&whole[..], &[0]].concat()), Err(ManifestError::Trailing));
    let setuid = LayerEntry::File {
        attributes: Attributes { mode: 0o4755, ..OWN },
        size: 1,
        content: FileContent { hash: ContentHash::of(b"1"), place: ContentPlace::Blob },
    };
    assert!(LayerManifest::decode(&bytes_of(&[("a", setuid)])).is_err());
}

fn entries() -> impl Strategy<Value = LayerManifest> {
    let path = prop::sample::select(vec!["x", "y", "d", "d/f", "d/g", "d/e", "d/e/h"]);
    let entry = prop_oneof![
        Just(LayerEntry::Removed),
        (0..3_u8).prop_map(|content| file(&content.to_string())),
        Just(directory()),
        Just(symlink("x")),
    ];
    prop::collection::btree_map(path, entry, 0..5)
        .prop_map(|entries| manifest(&entries.into_iter().collect::<Vec<_>>()))
}

/// A tree as a view shows it: layers put on top of each other, one after the other.
fn shown(tree: &mut BTreeMap<PathBuf, LayerEntry>, layer: &LayerManifest) {
    for (path, entry) in &layer.entries {
        let is_kept = matches!(entry, LayerEntry::Directory { replaces: false, .. })
            && tree.get(path).is_some_and(LayerEntry::is_directory);
        if !is_kept {
            tree.retain(|other, _| !other.starts_with(path));
        }
        match entry {
            LayerEntry::Removed => {}
            LayerEntry::Directory { attributes, .. } => {
                let entry = LayerEntry::Directory { attributes: *attributes, replaces: false };
                tree.insert(path.clone(), entry);
            }
            LayerEntry::Symlink { .. } | LayerEntry::File { .. } => {
                let mut entry = entry.clone();
                if let LayerEntry::File { content, .. } = &mut entry {
                    content.place = ContentPlace::Blob;
                }
                tree.insert(path.clone(), entry);
            }
        }
    }
}

/// Without directories that are only there for what was decided below them.
fn contents(tree: &BTreeMap<PathBuf, LayerEntry>) -> Vec<(&PathBuf, &LayerEntry)> {
    tree.iter().filter(|(_, entry)| !entry.is_directory()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn squashed_layers_show_what_the_layers_show(bottom in entries(), layers in prop::collection::vec(entries(), 1..5)) {
        let (mut one, mut other) = (BTreeMap::new(), BTreeMap::new());
        shown(&mut one, &bottom);
        shown(&mut other, &bottom);
        layers.iter().for_each(|layer| shown(&mut one, layer));
        let squashed = squash(&layers);
        shown(&mut other, &squashed.manifest);
        prop_assert_eq!(one, other);
        prop_assert_eq!(
            squashed.manifest.entries.keys().collect::<Vec<_>>(), squashed.sources.keys().collect::<Vec<_>>()
        );
        prop_assert!(squashed.manifest.has_assigned_places());
        prop_assert_eq!(LayerManifest::decode(&squashed.manifest.encode()), Ok(squashed.manifest));
    }

    #[test]
    fn composition_does_not_depend_on_the_order_of_the_layers(
        manifests in prop::collection::vec(entries(), 4),
        order in Just(vec![0_usize, 1, 2, 3]).prop_shuffle(),
        is_last_above in any::<bool>(),
        keep in prop::option::of(0..4_usize),
    ) {
        let layers: Vec<(LayerPosition, LayerManifest)> = manifests.into_iter().enumerate()
            .map(|(index, manifest)| {
                let after: &[usize] = if is_last_above && index == 3 { &[0, 1] } else { &[] };
                (position(index, after), manifest)
            })
            .collect();
        let on_conflict = keep.map_or(OnConflict::Fail, |at| OnConflict::Keep(layers[at].0.step.clone()));
        let as_ordered = |order: &[usize]| {
            let ordered: Vec<OrderedLayer<'_>> = order.iter()
                .map(|at| OrderedLayer { position: &layers[*at].0, manifest: &layers[*at].1 })
                .collect();
            compose(&ordered, &on_conflict)
        };
        prop_assert_eq!(as_ordered(&[0, 1, 2, 3]), as_ordered(&order));
    }

    #[test]
    fn chain_never_conflicts(manifests in prop::collection::vec(entries(), 1..5)) {
        let layers: Vec<(LayerPosition, LayerManifest)> = manifests.into_iter().enumerate()
            .map(|(index, manifest)| (position(index, &(0..index).collect::<Vec<_>>()), manifest))
            .collect();
        prop_assert!(is_chain(layers.iter().map(|(position, _)| position)));
        prop_assert_eq!(told(&layers, &OnConflict::Fail), "");
    }

    /// Two layers that compose show the same, whichever is on top.
    #[test]
    fn layers_without_conflict_commute(one in entries(), other in entries(), bottom in entries()) {
        let layers = [(position(0, &[]), one.clone()), (position(1, &[]), other.clone())];
        if told(&layers, &OnConflict::Fail).is_empty() {
            let (mut first, mut second) = (BTreeMap::new(), BTreeMap::new());
            for (tree, order) in [(&mut first, [&bottom, &one, &other]), (&mut second, [&bottom, &other, &one])] {
                order.into_iter().for_each(|layer| shown(tree, layer));
            }
            prop_assert_eq!(first, second);
        }
    }

    /// What is kept wins at every path that it has, whatever is on top of it.
    #[test]
    fn step_that_is_kept_shows_its_own(one in entries(), other in entries(), bottom in entries()) {
        let layers = [(position(0, &[]), one.clone()), (position(1, &[]), other.clone())];
        let ordered: Vec<OrderedLayer<'_>> =
            layers.iter().map(|(position, manifest)| OrderedLayer { position, manifest }).collect();
        for (step, kept) in [("a", &one), ("b", &other)] {
            let composed = compose(&ordered, &OnConflict::Keep(step.to_owned()));
            let composed = composed.expect("it has a part in every conflict");
            let mut tree = BTreeMap::new();
            [&bottom, &one, &other].into_iter().for_each(|layer| shown(&mut tree, layer));
            let decided = composed.decisions.iter().map(|(path, decision)| (path.clone(), decision.entry.clone()));
            shown(&mut tree, &LayerManifest { entries: decided.collect() });
            for (path, entry) in &kept.entries {
                match entry {
                    LayerEntry::Removed => prop_assert!(!tree.contains_key(path), "{path:?} {tree:?}"),
                    entry => prop_assert!(
                        tree.get(path).is_some_and(|there| there.agrees_with(entry)), "{path:?} {tree:?}"
                    ),
                }
            }
            let is_tree = contents(&tree).iter().all(|(path, _)| {
                path.ancestors().skip(1).all(|above| tree.get(above).is_none_or(LayerEntry::is_directory))
            });
            prop_assert!(is_tree);
        }
    }

    #[test]
    fn noise_is_no_manifest_that_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..256), count in 0..4_u8) {
        if let Some(first) = bytes.first_mut() {
            *first = count;
        }
        if let Ok(manifest) = LayerManifest::decode(&bytes) {
            prop_assert_eq!(manifest.encode(), bytes);
        }
    }
}
