//! Errors of `thalweg sketch`.

use super::*;

#[test]
fn errors_name_the_file_and_the_difference() {
    let place = Place::new();
    let [count_min, count_sketch, ..] = of_all_kinds(1, 1);
    let other_shape = CountSketch::<i64>::new(Shape::new(5, 512).unwrap(), Hasher::new(7));
    let other_seed = CountSketch::<i64>::new(Shape::new(5, 1024).unwrap(), Hasher::new(8));
    let with_keys = |sketch| State::from(Linear::CountSketch(WithTopK::new(sketch, 8).into()));
    place.write("count-sketch", &meta("src"), &count_sketch);
    place.write("count-min", &meta("src"), &count_min);
    place.write("of-dst", &meta("dst"), &count_sketch);
    place.write("seed-8", &meta("src"), &with_keys(other_seed));
    place.write("narrow", &meta("src"), &with_keys(other_shape));
    place.write("no-keys", &meta("src"), &without_keys(count_sketch.clone()));
    let bytes = fs::read(place.path("count-sketch")).unwrap();
    fs::write(place.path("cut"), &bytes[..bytes.len() - 1]).unwrap();
    fs::write(place.path("nothing"), b"").unwrap();
    for (other, difference) in [
        ("count-min", "kinds differ: Count Sketch and Count-Min"),
        ("of-dst", "keys differ: \"src\" and \"dst\""),
        ("seed-8", "hash seeds differ: 0x7 and 0x8"),
        ("narrow", "sizes differ: 5 x 1024 and 5 x 512 counters"),
        ("no-keys", "only the first state tracks its largest keys"),
    ] {
        let reason = format!(
            "count-sketch and {other}: {difference}; expected sketches of the same task, written with the same --memory, \
             --threads, --keep-windows and --seed"
        );
        let merge = place.sketch(&["merge", "-o", "whole", "count-sketch", other]);
        assert_eq!((merge.code, merge.stdout.as_str()), (Some(1), ""));
        assert_eq!(merge.stderr, format!("thalweg: cannot merge {reason}\n"));
        assert!(!place.path("whole").exists());
        let diff = place.sketch(&["diff", "count-sketch", other]);
        assert_eq!((diff.code, diff.stdout.as_str()), (Some(1), ""));
        assert_eq!(diff.stderr, format!("thalweg: cannot compare {reason}\n"));
    }
    for (file, reason) in [
        ("cut", "cannot read cut: damaged or truncated: the checksum at offset "),
        ("nothing", "cannot read nothing: not a saved sketch: empty"),
        ("missing", "cannot read missing: "),
        ("-", "cannot read standard input: "),
    ] {
        let [show, merge] = [&["show", file][..], &["merge", "-o", "whole", "count-sketch", file]];
        for arguments in [show, merge, &["diff", "count-sketch", file], &["diff", file, "count-sketch"]] {
            let run = place.sketch(arguments);
            assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{arguments:?}");
            assert!(run.stderr.starts_with(&format!("thalweg: {reason}")), "{arguments:?}: {}", run.stderr);
        }
    }
    let run = place.sketch(&["merge", "-o", "missing/whole", "count-sketch"]);
    assert!(run.ended_with(1).stderr.starts_with("thalweg: cannot write missing/whole: "));
    for arguments in
        [&["show"][..], &["merge", "-o", "whole"], &["merge", "count-sketch"], &["diff", "count-sketch"], &[]]
    {
        place.sketch(arguments).ended_with(2);
    }
}
