//! What CMake installs, and that C and C++ projects can use it in every way the README names.

// Miri cannot start other programs.
#![cfg(not(miri))]

mod support;

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};
use support::{
    cc::{root, soname},
    tools::{self, BUILD_TIME, Folder, succeed},
};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const TOOLS: &[&str] = &["cmake", "ctest", "make", "cc", "c++"];

/// Configures `source` into `build`.
fn configure(source: &Path, build: &Path) -> Command {
    let mut command = tools::command("cmake");
    command.arg("-S").arg(source).arg("-B").arg(build);
    command.env("CMAKE_GENERATOR", "Unix Makefiles");
    command
}

/// As `configure`, for a project that has luma's CMakeLists.txt in it.
fn configure_with_luma(source: &Path, build: &Path) -> Command {
    // Every build here is the same build, so cargo does it once and keeps it for the next run.
    let cargo = std::env::var_os("LUMA_CARGO_TARGET_DIR").unwrap_or_else(|| {
        Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("cmake-cargo")
            .into()
    });
    let mut command = configure(source, build);
    command.arg(define("LUMA_CARGO_TARGET_DIR", cargo));
    command
}

fn define(name: &str, value: impl Into<OsString>) -> OsString {
    let mut argument = OsString::from(format!("-D{name}="));
    argument.push(value.into());
    argument
}

fn build(folder: &Path) {
    let mut command = tools::command("cmake");
    // A version that cudarc does not know fails its build; luma's must not let it see one.
    command
        .arg("--build")
        .arg(folder)
        .env("CUDARC_CUDA_VERSION", "1");
    succeed(&mut command, BUILD_TIME);
}

fn ctest(folder: &Path) {
    let mut command = tools::command("ctest");
    command
        .current_dir(folder)
        .args(["--output-on-failure", "--no-tests=error"]);
    // Examples and consumers are about the package, so any machine's host memory will do.
    command.env("LUMA_BACKEND", "host");
    succeed(&mut command, BUILD_TIME);
}

/// The build tree of the project itself, made once.
fn build_tree() -> &'static Path {
    static TREE: OnceLock<Folder> = OnceLock::new();
    let tree = TREE.get_or_init(|| {
        let tree = Folder::new("packaging-build");
        succeed(
            configure_with_luma(root(), tree.path()).arg(define("LUMA_INSTALL", "ON")),
            BUILD_TIME,
        );
        build(tree.path());
        tree
    });
    tree.path()
}

/// An installed copy, moved after the installation to where nothing was told of, and with a space
/// in its path.
fn moved_prefix() -> (Folder, PathBuf) {
    let folder = Folder::new("packaging");
    let installed = folder.path().join("installed");
    let moved = folder.path().join("moved to");
    let mut install = tools::command("cmake");
    install
        .arg("--install")
        .arg(build_tree())
        .arg("--prefix")
        .arg(&installed);
    succeed(&mut install, BUILD_TIME);
    fs::rename(installed, &moved).expect("the copy can be moved");
    (folder, moved)
}

/// The files and links under `folder`, by their paths in it, in order; a link with its target.
fn listing(folder: &Path) -> Vec<String> {
    fn walk(top: &Path, folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("an installed folder can be read") {
            let path = entry.expect("an installed folder can be read").path();
            let name = path
                .strip_prefix(top)
                .expect("it lies in the folder")
                .display()
                .to_string();
            if let Ok(target) = fs::read_link(&path) {
                found.push(format!("{name} -> {}", target.display()));
            } else if path.is_dir() {
                walk(top, &path, found);
            } else {
                found.push(name);
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}

fn expected_listing() -> Vec<String> {
    let soname = soname();
    let mut expected: Vec<String> = [
        "include/luma.h",
        "include/luma.hpp",
        "lib/cmake/luma/lumaConfig.cmake",
        "lib/cmake/luma/lumaConfigVersion.cmake",
        "lib/cmake/luma/lumaTargets.cmake",
        "lib/libluma.a",
        "lib/pkgconfig/luma.pc",
    ]
    .map(str::to_owned)
    .into();
    expected.push(format!("lib/libluma.so -> {soname}"));
    expected.push(format!("lib/{soname} -> libluma.so.{VERSION}"));
    expected.push(format!("lib/libluma.so.{VERSION}"));
    expected.sort();
    expected
}

#[test]
fn exactly_these_files_are_installed() {
    if !tools::available(TOOLS) {
        return;
    }
    let (_folder, prefix) = moved_prefix();
    assert_eq!(listing(&prefix), expected_listing());
    for header in ["include/luma.h", "include/luma.hpp"] {
        let read = |top: &Path| fs::read(top.join(header)).expect("a header can be read");
        assert!(
            read(&prefix) == read(root()),
            "{header} is not the one of the source tree"
        );
    }
    // Nothing may lead back to where it was built or first installed.
    for file in ["lib/pkgconfig/luma.pc", "lib/cmake/luma/lumaConfig.cmake"] {
        let text = fs::read_to_string(prefix.join(file)).expect("a text file can be read");
        for folder in [
            root(),
            build_tree(),
            prefix.parent().expect("the prefix lies in a folder"),
        ] {
            let folder = folder.to_str().expect("the path is text");
            assert!(!text.contains(folder), "{file} names {folder}:\n{text}");
        }
    }
}

#[test]
fn destdir_goes_before_the_prefix() {
    if !tools::available(TOOLS) {
        return;
    }
    let stage = Folder::new("packaging-stage");
    let mut install = tools::command("cmake");
    install
        .arg("--install")
        .arg(build_tree())
        .args(["--prefix", "/opt/luma"]);
    succeed(install.env("DESTDIR", stage.path()), BUILD_TIME);
    assert_eq!(listing(&stage.path().join("opt/luma")), expected_listing());
    assert_eq!(listing(stage.path()).len(), expected_listing().len());
}

#[test]
fn consumers_find_a_moved_copy_shared_and_static() {
    if !tools::available(TOOLS) {
        return;
    }
    let (folder, prefix) = moved_prefix();
    for linked in ["OFF", "ON"] {
        let tree = folder.path().join(format!("consumer-static-{linked}"));
        let mut command = configure(&root().join("c_tests/consumer"), &tree);
        command
            .arg(define("CMAKE_PREFIX_PATH", &prefix))
            .arg(define("LUMA_STATIC", linked));
        succeed(&mut command, BUILD_TIME);
        build(&tree);
        ctest(&tree);
    }

    // The static one carries the library in itself; the shared one is lost without it.
    fs::remove_dir_all(&prefix).expect("the copy can be removed");
    ctest(&folder.path().join("consumer-static-ON"));
    let mut shared = tools::command(folder.path().join("consumer-static-OFF/consumer_c"));
    let lost = tools::run(&mut shared, BUILD_TIME);
    assert!(
        !lost.status.success() && lost.stderr.contains(&soname()),
        "{}",
        lost.stderr
    );
}

#[test]
fn versions_that_do_not_fit_are_refused() {
    if !tools::available(TOOLS) {
        return;
    }
    let (folder, prefix) = moved_prefix();
    let numbers: Vec<u32> = VERSION
        .split('.')
        .map(|part| part.parse().expect("a version is three numbers"))
        .collect();
    let [major, minor, patch] = numbers[..] else {
        panic!("{VERSION} is not three numbers")
    };
    let cases = [
        (format!("{major}.{minor}"), true),
        (format!("{major}.{minor}.{patch}"), true),
        (format!("{major}.{minor}.{}", patch + 1), false),
        (format!("{major}.{}", minor + 1), false),
        (format!("{}.0", major + 1), false),
    ];
    for (wanted, fits) in cases {
        let tree = folder.path().join(format!("wants-{wanted}"));
        let mut command = configure(&root().join("c_tests/consumer"), &tree);
        command.arg(define("CMAKE_PREFIX_PATH", &prefix));
        command.arg(define("LUMA_WANTED_VERSION", &wanted));
        let finished = tools::run(&mut command, BUILD_TIME);
        assert_eq!(
            finished.status.success(),
            fits,
            "luma {wanted}:\n{}",
            finished.stderr
        );
        if !fits {
            let named = finished.stderr.contains(&format!("version: {VERSION}"));
            assert!(
                named,
                "the refusal does not say what is there:\n{}",
                finished.stderr
            );
        }
    }
}

#[test]
fn the_examples_build_against_an_installed_copy() {
    if !tools::available(TOOLS) {
        return;
    }
    let (folder, prefix) = moved_prefix();
    let tree = folder.path().join("examples");
    let mut command = configure(&root().join("examples"), &tree);
    succeed(
        command.arg(define("CMAKE_PREFIX_PATH", &prefix)),
        BUILD_TIME,
    );
    build(&tree);
    ctest(&tree);
}

#[test]
fn pkg_config_gives_what_a_compiler_needs() {
    if !tools::available(&[TOOLS, &["pkg-config"]].concat()) {
        return;
    }
    let (folder, prefix) = moved_prefix();
    let library = prefix.join("lib");
    let ask = |arguments: &str| {
        let mut command = tools::command("pkg-config");
        command.args(arguments.split(' ')).arg("luma");
        command.env("PKG_CONFIG_PATH", library.join("pkgconfig"));
        succeed(&mut command, BUILD_TIME).trim().to_owned()
    };
    assert_eq!(ask("--modversion"), VERSION);

    let cases = [
        ("cc", "main.c", ""),
        ("c++", "main.cpp", ""),
        ("cc", "main.c", "-static"),
    ];
    for (compiler, source, link) in cases {
        let program = folder.path().join(format!("{source}{link}.out"));
        let flags = ask(if link.is_empty() {
            "--cflags --libs"
        } else {
            "--static --cflags --libs"
        });
        // Through a shell, as a makefile would, since the flags quote the space in the path.
        let line = format!("{compiler} {link} \"$SOURCE\" -o \"$PROGRAM\" {flags}");
        let mut compile = tools::command("sh");
        compile.args(["-c", &line]).env("PROGRAM", &program);
        compile.env("SOURCE", root().join("c_tests/consumer").join(source));
        succeed(&mut compile, BUILD_TIME);

        let mut run = tools::command(&program);
        if link.is_empty() {
            run.env("LD_LIBRARY_PATH", &library);
        }
        let output = succeed(&mut run, BUILD_TIME);
        assert!(output.contains(&format!("luma {VERSION}")), "{output}");
    }
}

/// The program finds what it preloads where both are installed.
#[test]
fn tools_are_installed_where_they_find_each_other() {
    if !tools::available(TOOLS) {
        return;
    }
    let folder = Folder::new("packaging-tools");
    let (tree, prefix) = (folder.path().join("build"), folder.path().join("prefix"));
    // The project's own: what is built there is needed later, too.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    let mut command = configure(root(), &tree);
    command
        .arg(define(
            "LUMA_CARGO_TARGET_DIR",
            target.expect("it is a folder in it"),
        ))
        .args(["-DLUMA_INSTALL=ON", "-DLUMA_TOOLS=ON"]);
    succeed(&mut command, BUILD_TIME);
    build(&tree);
    let mut install = tools::command("cmake");
    install
        .arg("--install")
        .arg(&tree)
        .arg("--prefix")
        .arg(&prefix);
    succeed(&mut install, BUILD_TIME);
    let mut expected = expected_listing();
    expected.extend(["bin/luma", "lib/libluma_interpose.so"].map(str::to_owned));
    expected.sort();
    assert_eq!(listing(&prefix), expected);
    let mut run = tools::command(prefix.join("bin/luma"));
    run.args(["run", "--report"])
        .arg(folder.path().join("report.json"));
    run.args(["--", "sh", "-c", "echo \"$LD_PRELOAD\""]);
    let preloaded = succeed(&mut run, BUILD_TIME);
    let library = prefix.join("lib/libluma_interpose.so");
    assert_eq!(Path::new(preloaded.trim()), library);
}

/// Distributions put libraries into a folder of their own below lib.
#[test]
fn a_library_folder_of_several_parts_works() {
    if !tools::available(&[TOOLS, &["pkg-config"]].concat()) {
        return;
    }
    let folder = Folder::new("packaging-libdir");
    let (tree, prefix) = (folder.path().join("build"), folder.path().join("prefix"));
    let mut command = configure_with_luma(root(), &tree);
    command.arg(define("LUMA_INSTALL", "ON"));
    command.arg(define("CMAKE_INSTALL_LIBDIR", "lib/some-linux-gnu"));
    succeed(&mut command, BUILD_TIME);
    build(&tree);
    let mut install = tools::command("cmake");
    install
        .arg("--install")
        .arg(&tree)
        .arg("--prefix")
        .arg(&prefix);
    succeed(&mut install, BUILD_TIME);

    let library = prefix.join("lib/some-linux-gnu");
    for (variable, path) in [("prefix", &prefix), ("libdir", &library)] {
        let mut ask = tools::command("pkg-config");
        ask.arg(format!("--variable={variable}")).arg("luma");
        ask.env("PKG_CONFIG_PATH", library.join("pkgconfig"));
        let answer = PathBuf::from(succeed(&mut ask, BUILD_TIME).trim());
        let resolve = |path: &Path| path.canonicalize().expect("the folder is there");
        assert_eq!(resolve(&answer), resolve(path), "{variable}");
    }

    let consumer = folder.path().join("consumer");
    let mut command = configure(&root().join("c_tests/consumer"), &consumer);
    command.arg(define("luma_DIR", library.join("cmake/luma")));
    succeed(&mut command, BUILD_TIME);
    build(&consumer);
    ctest(&consumer);
}

/// The two ways to have luma's sources inside another project; neither installs luma with it.
#[test]
fn other_projects_build_it_inside_themselves() {
    if !tools::available(TOOLS) {
        return;
    }
    let ways = [
        (
            "add_subdirectory",
            "add_subdirectory(\"${LUMA_SOURCE}\" luma)",
        ),
        (
            "fetch_content",
            "include(FetchContent)\n\
             FetchContent_Declare(luma SOURCE_DIR \"${LUMA_SOURCE}\")\n\
             FetchContent_MakeAvailable(luma)",
        ),
    ];
    let mut generators = vec!["Unix Makefiles"];
    if tools::installed("ninja") {
        // It wants to know beforehand which command makes the library.
        generators.push("Ninja");
    }
    for (name, way) in ways {
        for generator in &generators {
            let folder = Folder::new(name);
            let text = format!(
                "cmake_minimum_required(VERSION 3.21)\n\
                 project(outer LANGUAGES C CXX)\n\
                 enable_testing()\n\
                 {way}\n\
                 foreach(kind IN ITEMS luma luma-static)\n\
                 \x20 add_executable(c-$<kind> \"${{LUMA_SOURCE}}/c_tests/consumer/main.c\")\n\
                 \x20 add_executable(cpp-$<kind> \"${{LUMA_SOURCE}}/c_tests/consumer/main.cpp\")\n\
                 \x20 foreach(program IN ITEMS c-$<kind> cpp-$<kind>)\n\
                 \x20   target_link_libraries(${{program}} PRIVATE luma::${{kind}})\n\
                 \x20   set_target_properties(${{program}} PROPERTIES CXX_STANDARD 17)\n\
                 \x20   add_test(NAME ${{program}} COMMAND ${{program}})\n\
                 \x20 endforeach()\n\
                 endforeach()\n\
                 install(TARGETS c-luma)\n"
            )
            .replace("$<kind>", "${kind}");
            fs::write(folder.path().join("CMakeLists.txt"), text)
                .expect("a project can be written");

            let tree = folder.path().join("build");
            let mut command = configure_with_luma(folder.path(), &tree);
            command
                .env("CMAKE_GENERATOR", generator)
                .arg(define("LUMA_SOURCE", root()));
            succeed(&mut command, BUILD_TIME);
            build(&tree);
            ctest(&tree);

            let prefix = folder.path().join("prefix");
            let mut install = tools::command("cmake");
            install
                .arg("--install")
                .arg(&tree)
                .arg("--prefix")
                .arg(&prefix);
            succeed(&mut install, BUILD_TIME);
            assert_eq!(listing(&prefix), ["bin/c-luma"], "{name}, {generator}");
        }
    }
}

/// Debian's own cargo is older than the edition of the manifest, and its message does not help.
#[test]
fn a_cargo_that_is_too_old_is_refused_with_advice() {
    if !tools::available(TOOLS) {
        return;
    }
    let folder = Folder::new("old-cargo");
    let cargo = folder.path().join("cargo");
    fs::write(&cargo, "#!/bin/sh\necho 'cargo 1.63.0'\n").expect("a script can be written");
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).expect("it can be made to run");
    let mut command = configure_with_luma(root(), &folder.path().join("build"));
    let finished = tools::run(command.arg(define("LUMA_CARGO", &cargo)), BUILD_TIME);
    assert!(!finished.status.success());
    let text = finished
        .stderr
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(text.contains("is 1.63.0, but Rust 1."), "{text}");
    assert!(text.contains("rustup.rs"), "{text}");
}
