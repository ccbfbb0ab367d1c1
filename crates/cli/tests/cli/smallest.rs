use super::{file, luma};

const STEP: u64 = 64 << 10;

/// Blocks that leave holes: every second one of eight is freed, then one of three times the size
/// is asked for.
fn holes() -> String {
    let mut text = String::from("op,id,size\n");
    for id in 0..8 {
        text += &format!("alloc,{id},3145728\n");
    }
    for id in (0..8).step_by(2) {
        text += &format!("free,{id},3145728\n");
    }
    text + "alloc,9,9437184\n"
}

#[test]
fn the_smallest_device_completes_the_trace_and_one_step_less_does_not() {
    let path = file("holes.csv", &holes());
    let run = luma(&[
        "replay",
        "--json",
        "--runs",
        "1",
        "--smallest",
        "--preset",
        "all",
        &path,
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for row in run.json()["rows"].as_array().unwrap() {
        let preset = row["preset"].as_str().unwrap();
        let live = row["peak_live_bytes"].as_u64().unwrap();
        assert_eq!(live, 8 * 3145728);
        let smallest = &row["smallest"];
        assert_eq!(smallest["resolution_bytes"], STEP);
        let capacity = smallest["capacity_bytes"].as_u64().unwrap();
        assert!(
            capacity >= live && capacity % STEP == 0,
            "{preset}: {capacity}"
        );
        let over = smallest["over_peak_live_percent"].as_f64().unwrap();
        assert!((over - (capacity as f64 / live as f64 - 1.0) * 100.0).abs() < 1e-6);

        let completes = |capacity: u64| {
            let capacity = capacity.to_string();
            luma(&[
                "replay",
                "--runs",
                "1",
                "--preset",
                preset,
                "--capacity",
                &capacity,
                &path,
            ])
            .code
        };
        assert_eq!(completes(capacity), 0, "{preset} at {capacity}");
        assert_eq!(completes(capacity - STEP), 1, "{preset} below {capacity}");
    }
}

#[test]
fn the_table_has_two_more_columns() {
    let path = file("columns.csv", "op,id,size\nalloc,0,4194304\n");
    let run = luma(&["replay", "--runs", "1", "--smallest", &path]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(
        lines[0].ends_with(", smallest device to 64 KiB"),
        "{}",
        lines[0]
    );
    assert!(lines[2].ends_with("smallest  over live"), "{}", lines[2]);
    assert!(lines[3].ends_with("4 MiB     0.00 %"), "{}", lines[3]);
}

#[test]
fn what_no_device_can_hold_has_no_smallest() {
    let path = file("endless.csv", "op,id,size\nalloc,0,18446744073709551615\n");
    let run = luma(&["replay", "--json", "--smallest", &path]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let row = &run.json()["rows"][0];
    assert_eq!(row["out_of_memory"]["line"], 2);
    assert!(row["smallest"]["capacity_bytes"].is_null());
}
