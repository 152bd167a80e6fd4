"""Fragments of plans, and the one fault that each has: line:column: sentence."""

FAULTS: list[tuple[str, str]] = [
    (
        "description: a\u2028b",
        "1:15: U+2028 ends a line for YAML, but not for editors; remove it, or use a plain newline",
    ),
    (
        "description: a\rb",
        "1:15: U+000D ends a line for YAML, but not for editors; remove it, or use a plain newline",
    ),
    (
        "step: [ go: one ]",
        "1:1: unknown key 'step' in the plan; did you mean 'steps'?",
    ),
    (
        "runtime: 60",
        "1:1: unknown key 'runtime' in the plan; here it is called 'measure' and belongs in 'go' or 'defaults'",
    ),
    (
        "workload: { oltp: {} }",
        "1:1: unknown key 'workload' in the plan; here it is called 'workloads'",
    ),
    (
        "destroy: yes",
        "1:10: destroy: 'yes' is neither true nor false; write true",
    ),
    (
        'destroy: "True"',
        "1:10: destroy: 'True' is neither true nor false; write true",
    ),
    (
        "engine: { cpus: 0-3,8 }",
        "1:21: unknown key '8' in engine; a comma ends a value: write a list of numbers in quotes, '0-3,8'",
    ),
    (
        "engine: { threads: 1.5 }",
        "1:20: threads: '1.5' is not a whole number",
    ),
    (
        "engine: { threads: 08 }",
        "1:20: threads: '08' has a leading zero; write 8",
    ),
    (
        "engine: { threads: -1 }",
        "1:20: threads: '-1' is too little; the least is 0",
    ),
    (
        "engine: { threads: 257 }",
        "1:20: threads: '257' is too much; the most is 256",
    ),
    (
        "engine: { cpus: all }",
        "1:17: cpus: 'all' is neither a core nor a range of them; write for example '0-3,8', with the quotes",
    ),
    (
        "engine: { cpus: 3-1 }",
        "1:17: cpus: '3-1' ends before it begins; write the smaller number first",
    ),
    (
        "engine: { cpus: [ 0-3, 2 ] }",
        "1:17: cpus: duplicate core 2",
    ),
    (
        "engine: { cpus: 0-99999999999 }",
        "1:17: cpus: '0-99999999999' is beyond the last core that Linux numbers, 4095",
    ),
    (
        "engine: { cpus: [] }",
        "1:17: cpus is a list; it needs cores, like '0-3,8'",
    ),
    (
        "engine: { cpus: -1 }",
        "1:17: cpus: '-1' is neither a core nor a range of them; write for example '0-3,8', with the quotes",
    ),
    (
        "engine: { polled: true }",
        "1:19: polled is an option of io_uring, but the backend is auto: `backend: io_uring`",
    ),
    (
        "engine: { spin: yes }",
        "1:17: spin: 'yes' is not known here; there are 'auto', 'off' and 'on'",
    ),
    (
        "engine: { backend: aio }",
        "1:20: backend: 'aio' is not known here; did you mean 'libaio'?",
    ),
    (
        "engine: { backend: posixaio }",
        "1:20: backend: 'posixaio' is not known here; there are 'auto', 'io_uring', 'libaio', 'null' and 'nvme'",
    ),
    (
        "lease: 10",
        "1:8: lease: '10' has no unit; write 10s for seconds",
    ),
    (
        "lease: 500ms",
        "1:8: lease: '500ms' is too little; the least is 1s",
    ),
    (
        "achieved_iops_tolerance: 25",
        "1:26: achieved_iops_tolerance: '25' is more than 1; write 25% if percent is meant",
    ),
    (
        "on_io_error: abort",
        "1:14: on_io_error: 'abort' is not known here; did you mean 'stop'?",
    ),
    (
        "name: a/b",
        "1:7: 'a/b' cannot be a plan's name: its run folders are called after it",
    ),
    (
        "steps:",
        "1:1: steps is empty; it needs a list, each entry after a -",
    ),
    (
        "steps: go",
        "1:8: steps is 'go'; it needs a list, each entry after a -",
    ),
    (
        "steps: [ { goo: max } ]",
        "1:12: unknown key 'goo' in a step; did you mean 'go'?",
    ),
    (
        "steps: [ { go: one, edit: { rollup: all=all, set: { iops: 1 } } } ]",
        "1:10: a step has both 'go' and 'edit'; make it two",
    ),
    (
        "steps: [ {} ]",
        "1:10: a step has neither 'go' nor 'edit'",
    ),
    (
        "steps: [ 5 ]",
        "1:10: a step is '5'; it needs keys, like go, edit, precondition",
    ),
    (
        "steps: [ { go: { warmup: 5s } } ]",
        "1:16: go needs 'name'",
    ),
    (
        "steps: [ { go: { name: one, ramp_time: 5s } } ]",
        "1:29: unknown key 'ramp_time' in go; here it is called 'warmup'",
    ),
    (
        "workloads: { w: { maxTags: 4 } }",
        "1:19: unknown key 'maxTags' in workload 'w'; it is written 'maxtags'",
    ),
    (
        "workloads: { w: { IOPS: 4 } }",
        "1:19: unknown key 'IOPS' in workload 'w'; it is written 'iops'",
    ),
    (
        "workloads: { w: { block_size: 4k } }",
        "1:19: unknown key 'block_size' in workload 'w'; it is written 'blocksize'",
    ),
    (
        "steps: [ { go: { name: one, IOPS_curve: [10%] } } ]",
        "1:29: unknown key 'IOPS_curve' in go; it is written 'iops_curve'",
    ),
    (
        "steps: [ { go: { name: one, blockSize: 4k } } ]",
        "1:29: unknown key 'blockSize' in go; it belongs in a workload or an edit's 'set'",
    ),
    (
        "rollups: [ { by: host, nocsv: true } ]",
        "1:24: unknown key 'nocsv' in a rollup; use 'csv: false'",
    ),
    (
        "rollups: [ { by: host, maxDroop: 5% } ]",
        "1:24: unknown key 'maxDroop' in a rollup; it is written 'max_droop'",
    ),
    (
        "luns: { lun: /dev/sdb }",
        "1:9: unknown key 'lun' in luns; use 'paths' for block devices, 'files' for files",
    ),
    (
        "steps: [ { go: { name: one, blocksize: 8KiB } } ]",
        "1:29: unknown key 'blocksize' in go; it belongs in a workload or an edit's 'set'",
    ),
    (
        "steps: [ { go: { name: one, warmup: 30 } } ]",
        "1:37: warmup: '30' has no unit; write 30s for seconds",
    ),
    (
        "steps: [ { go: { name: one, measure: on } } ]",
        "1:38: measure: 'on' is no time; write for example 60s, or { metric: iops, accuracy: 2% }",
    ),
    (
        "steps: [ { go: { name: one, measure: 1:30 } } ]",
        "1:38: measure: '1:30' is not a duration; write 1m30s",
    ),
    (
        "steps: [ { go: { name: one, measure: 0s } } ]",
        "1:38: measure: a measurement cannot be empty",
    ),
    (
        "steps: [ { go: { name: one, measure: [60s] } } ]",
        "1:38: measure is a list; it needs keys, like time, metric, rollup, accuracy, confidence",
    ),
    (
        "steps: [ { go: { name: one, subinterval: 100ms } } ]",
        "1:42: subinterval: '100ms' is too little; the least is 250ms",
    ),
    (
        "steps: [ { go: { name: one, subinterval: 2h } } ]",
        "1:42: subinterval: '2h' is too much; the most is 1h",
    ),
    (
        "steps: [ { go: one }, { go: two }, { go: one } ]",
        "1:42: duplicate step name 'one' (first in line 1)",
    ),
    (
        "steps: [ { go: one }, { edit: { rollup: all=all, set: { iops: 5 } } } ]",
        "1:23: this edit is never in force: no 'go' follows it",
    ),
    (
        "steps: [ { edit: { rollup: all=all, set: { iops: 5 } } } ]",
        "1:10: this edit is never in force: no 'go' follows it",
    ),
    (
        "steps: [ { edit: { rollup: host=local, set: { iops: 5 } } }, { go: one } ]",
        "1:28: the plan has no rollup type 'host'; add it to the plan: rollups: [ host ]",
    ),
    (
        "rollups: [ host ]\nsteps: [ { edit: { rollup: hots=local, set: { iops: 5 } } }, { go: one } ]",
        "2:28: the plan has no rollup type 'hots'; did you mean 'host'?",
    ),
    (
        'rollups: [ host ]\nhosts: [ db1, db2 ]\nsteps: [ { edit: { rollup: "host={db1,db3}", set: { iops: 5 } '
        "} }, { go: one } ]",
        "3:28: the plan has no host 'db3'; did you mean 'db2'?",
    ),
    (
        "rollups: [ workload ]\nsteps: [ { edit: { rollup: workload=olpt, set: { iops: 5 } } }, { go: one } ]",
        "2:28: the plan has no workload 'olpt'; did you mean 'oltp'?",
    ),
    (
        "steps: [ { edit: { rollup: all=none, set: { iops: 5 } } }, { go: one } ]",
        "1:28: the rollup type 'all' has one instance, all=all; it has no 'none'",
    ),
    (
        'steps: [ { edit: { rollup: "host={a", set: { iops: 5 } } }, { go: one } ]',
        "1:28: rollup: 'host={a' is not a list of instances; write for example all=all, host=h1 or host={h1,h2}",
    ),
    (
        "steps: [ { edit: { rollup: all=all, set: {} } }, { go: one } ]",
        "1:42: set is empty; it needs settings, like iops: 1000",
    ),
    (
        "steps: [ { edit: { rollup: all=all, set: { iodepth: 8 } } }, { go: one } ]",
        "1:44: unknown key 'iodepth' in set; here it is called 'maxtags'",
    ),
    (
        "steps: [ { edit: { rollup: all=all, set: { iops: 5, total_iops: 9 } } }, { go: one } ]",
        "1:53: iops and total_iops set the same thing; remove one",
    ),
    (
        "steps: [ { edit: { rollup: all=all, set: { total_iops: 50% of step max } } }, { go: one } ]",
        "1:56: the plan has no step 'max'; there is 'one'",
    ),
    (
        "steps: [ { go: maximum }, { edit: { rollup: all=all, set: { total_iops: 50% of step maximun } } }, "
        "{ go: one } ]",
        "1:73: the plan has no step 'maximun'; did you mean 'maximum'?",
    ),
    (
        "steps: [ { edit: { rollup: all=all, set: { total_iops: 50% of step one } } }, { go: one } ]",
        "1:56: step 'one' does not run before this; only an earlier step has results",
    ),
    (
        "steps: [ { go: { name: l, loop: { maxtags: [1, 2] } } }, { edit: { rollup: all=all, set: { iops: "
        "50% of step l } } }, { go: one } ]",
        "1:98: the plan has no step 'l'; it is a loop: name one of its passes, l+maxtags=1 and l+maxtags=2",
    ),
    (
        "steps: [ { go: { name: l, loop: { total_iops: [10% of step one] } } }, { go: one } ]",
        "1:48: step 'one' does not run before this; only an earlier step has results",
    ),
    (
        "steps: [ { go: { name: l, loop: { maxtags: [1, 2, 1] } } } ]",
        "1:51: maxtags: duplicate value 1 in the loop",
    ),
    (
        "steps: [ { go: { name: l, loop: {} } } ]",
        "1:33: loop is empty; it needs parameters and values, like blocksize: [4KiB, 8KiB]",
    ),
    (
        "steps: [ { go: { name: l, loop: { maxtags: [] } } } ]",
        "1:44: maxtags is an empty list; a loop needs values",
    ),
    (
        "steps: [ { go: { name: l, loop: { maxtags: [1, 9000] } } } ]",
        "1:48: maxtags: '9000' is too much; the most is 8192",
    ),
    (
        "workloads: { oltp: { bs: 8KiB } }",
        "1:22: unknown key 'bs' in workload 'oltp'; here it is called 'blocksize'",
    ),
    (
        "workloads: { oltp: { blocksize: 8KB } }",
        "1:33: blocksize: '8KB' can mean two sizes; write 8KiB (8192 bytes) or 8kB (8000 bytes)",
    ),
    (
        "workloads: { oltp: { blocksize: 100 } }",
        "1:33: blocksize: 100 is no multiple of 512 bytes; write 512, or direct: false for a file",
    ),
    (
        "workloads: { oltp: { blocksize: 5000 } }",
        "1:33: blocksize: 5000 is no multiple of 512 bytes; write 4608 or 5120, or direct: false for a file",
    ),
    (
        "workloads: { oltp: { blocksize: 8KX } }",
        "1:33: blocksize: '8KX' is not a size; write for example 8KiB, 1.5GiB or 4096 (bytes)",
    ),
    (
        "workloads: { oltp: { fraction_read: 70 } }",
        "1:37: fraction_read: '70' is more than 1; write 70% if percent is meant",
    ),
    (
        "workloads: { oltp: { fraction_read: 120% } }",
        "1:37: fraction_read: '120%' is too much; the most is 100%",
    ),
    (
        "workloads: { oltp: { rw: randread } }",
        "1:22: unknown key 'rw' in workload 'oltp'; use 'iosequencer' and 'fraction_read'",
    ),
    (
        "workloads: { oltp: { numjobs: 4 } }",
        "1:22: unknown key 'numjobs' in workload 'oltp'; leave it out: a thread per core drives everything; "
        "more I/O in flight is 'maxtags'",
    ),
    (
        "workloads: { oltp: { size: 10GiB } }",
        "1:22: unknown key 'size' in workload 'oltp'; use 'range' for the driven part of a LUN; "
        "the size of a new file is in 'luns: { create: ... }'",
    ),
    (
        "workloads: { oltp: { iosequencer: randread } }",
        "1:35: iosequencer: 'randread' is not known here; did you mean 'random_steady'?",
    ),
    (
        "workloads: { oltp: { iops: 50% } }",
        "1:28: iops: '50%' needs a step; write 50% of step NAME",
    ),
    (
        "workloads: { oltp: { iops: -1 } }",
        "1:28: iops: '-1' is too little; the least is 0",
    ),
    (
        "workloads: { oltp: { iops: 50% of step one } }",
        "1:28: iops: no step has run when a workload begins; set this in an edit before a 'go'",
    ),
    (
        "workloads: { oltp: { range: [50%, 10%] } }",
        "1:29: range: 50%..10% ends before it begins; write the smaller place first",
    ),
    (
        "workloads: { oltp: { range: 50% } }",
        "1:29: range is '50%'; it needs two places in the LUN, like 0%..50% or 1GiB..2GiB",
    ),
    (
        "workloads: { oltp: { iops: 5k, think_time: 1ms } }",
        "1:44: think_time has no effect with iops: 5000, and no step sets max; leave one of them out",
    ),
    (
        "workloads: { oltp: { think_time: 1ms } }\nsteps: [ { go: { name: s, find: { metric: p99, target: 1ms } } } ]",
        "2:43: in step 's' the rate at max is taken for the most that is possible, but workload 'oltp' thinks; leave "
        "think_time out",
    ),
    (
        "workloads: { oltp: { select: { vendr: x } } }",
        "1:32: LUNs have no attribute 'vendr'; did you mean 'vendor'?",
    ),
    (
        "workloads: { oltp: { select: { workload: x } } }",
        "1:32: nothing can be selected by 'workload'; a select chooses LUNs, before workloads are placed on them",
    ),
    (
        'workloads: { "a+b": {} }',
        "1:14: 'a+b' cannot be a workload's name; use letters, digits, dots, - and _",
    ),
    (
        "workloads: {}",
        "1:1: the plan has no 'workloads', so there is no I/O; write workloads: { NAME: { blocksize: 8KiB } }",
    ),
    (
        "workloads: [ oltp ]",
        "1:12: workloads is a list; it needs keys, like name: value",
    ),
    (
        "luns: {}",
        "1:7: luns is empty; it needs select, paths, files or create",
    ),
    (
        'luns: { select: { size: "> 100G" } }',
        "1:25: size: '100G' can mean two sizes; write 100GiB (107374182400 bytes) or 100GB (100000000000 bytes)",
    ),
    (
        "luns: { select: { rotational: maybe } }",
        "1:31: rotational: 'maybe' is neither true nor false",
    ),
    (
        "luns: { select: { vendor: [] } }",
        "1:27: vendor is an empty list; it needs at least one condition",
    ),
    (
        'luns: { select: { vendor: "> 5" } }',
        "1:27: vendor cannot be compared with '5', since it is not a number; name its value",
    ),
    (
        "luns: { select: {}, paths: [/dev/sdb] }",
        "1:21: paths and select cannot both be given; put the paths into the select: { path: [...] }",
    ),
    (
        "luns: { select: [] }",
        "1:17: select is empty; it needs attributes, like vendor: HITACHI",
    ),
    (
        "luns: { paths: [sdb] }",
        "1:17: paths: 'sdb' is not an absolute path; hosts have no common folder to start from",
    ),
    (
        "luns: { select: { path: /dev/sd[b-e] } }",
        "1:32: not YAML: expected ',' or '}', but got '['; inside { } and [ ], text with { } [ ] or a comma "
        "in it needs quotes",
    ),
    (
        "luns: { create: { path: /data/, size: 1MiB } }",
        "1:25: '/data/' is a folder; write the path of a file, like /data/ivypy-{}",
    ),
    (
        "luns: { create: { path: /data/f, size: 9999999TiB } }",
        "1:40: size: '9999999TiB' is too much; the most is 8191PiB",
    ),
    (
        "luns: { create: { path: /data/f, size: 1KiB } }\nworkloads: { w: { blocksize: 4KiB } }",
        "1:40: workload 'w': /data/f has 1 KiB, no block of 4 KiB: choose a smaller blocksize or a larger LUN",
    ),
    (
        "luns: { create: { path: /data/f, size: 64MiB } }\nworkloads: { w: { range: 1GiB..2GiB } }",
        "2:26: range ends at 2,147,483,648, and /data/f at 67,108,864: choose an end within it",
    ),
    ("hosts: []", "1:8: hosts is empty; it needs a host, or leave it out for this machine"),
    (
        "luns: { create: { path: /data/f, size: 1MiB, count: 2 } }",
        "1:25: 2 files need {} in their path, which becomes the file's number",
    ),
    (
        "luns: { create: [ { path: /data/f, size: 1MiB }, { path: /data/f, size: 2MiB } ] }",
        "1:17: '/data/f' is created twice",
    ),
    (
        "luns: { files: data/* }",
        "1:16: files: 'data/*' is not an absolute path; hosts have no common folder to start from",
    ),
    (
        "luns: { select: { vendor: x } }\nworkloads: { oltp: { fraction_read: 70% } }",
        "2:14: workload 'oltp' writes (fraction_read 70%) to LUNs that the plan does not create, whose "
        "content would be lost; if that is meant, the plan needs 'destroy: true' and `ivypy run` needs "
        "--destroy TOKEN, which `ivypy devices` prints",
    ),
    (
        "luns: { select: { vendor: x } }\nsteps: [ { edit: { rollup: all=all, set: { fraction_read: 0% } } }, "
        "{ go: fill } ]",
        "3:14: workload 'oltp' writes (fraction_read 0% in step 'fill') to LUNs that the plan does not "
        "create, whose content would be lost; if that is meant, the plan needs 'destroy: true' and `ivypy "
        "run` needs --destroy TOKEN, which `ivypy devices` prints",
    ),
    (
        'hosts: [ "lab[01-03]", lab02 ]',
        "1:24: duplicate host 'lab02' (first in line 1)",
    ),
    (
        'hosts: [ "lab[3-1]" ]',
        "1:10: '3-1' in 'lab[3-1]' runs backwards; write 1-3",
    ),
    (
        'hosts: [ "lab[01-3]" ]',
        "1:10: '01-3' in 'lab[01-3]' begins and ends in different widths; write for example lab[01-16] or lab[1,3-5]",
    ),
    (
        'hosts: [ "lab[1-" ]',
        "1:10: a [ or ] in 'lab[1-' has no partner; write for example lab[01-16] or lab[1,3-5]",
    ),
    (
        'hosts: [ "lab[a-c]" ]',
        "1:10: [a-c] in 'lab[a-c]' is not a range of numbers; write for example lab[01-16] or lab[1,3-5]",
    ),
    (
        "hosts: [ perf@lab1 ]",
        "1:10: 'perf@lab1' cannot be a host's name; write { name: lab1, user: perf }",
    ),
    (
        "hosts: [ { user: perf } ]",
        "1:10: a host needs 'name'",
    ),
    (
        "hosts: [ { name: a, port: 99999 } ]",
        "1:27: port: '99999' is too much; the most is 65535",
    ),
    (
        'hosts: [ { name: a, command: "x \'y" } ]',
        '1:30: command: "x \'y" is not a line of shell words: no closing quotation',
    ),
    (
        "hosts: [ { name: a, launcher: command } ]",
        "1:31: the launcher 'command' needs a 'command', a command line that gives a pipe",
    ),
    (
        'hosts: [ { name: "a[1-2]", address: "10.0.0.[1-3]" } ]',
        "1:37: 2 names but 3 addresses; both need ranges of one length",
    ),
    (
        "hosts: [ { name: local, port: 22 } ]",
        "1:25: 'port' is for ssh; the launcher of this host is 'local'",
    ),
    (
        "rollups: [ hosts ]",
        "1:12: LUNs have no attribute 'hosts'; did you mean 'host'?",
    ),
    (
        "rollups: [ host, host ]",
        "1:18: duplicate rollup 'host' (first in line 1)",
    ),
    (
        "rollups: [ host+host ]",
        "1:12: duplicate attribute 'host' in the rollup",
    ),
    (
        "rollups: [ { by: host, max_droop: 30 } ]",
        "1:35: max_droop: '30' is more than 1; write 30% if percent is meant",
    ),
    (
        "rollups: [ { by: host, quantity: 0 } ]",
        "1:34: quantity: '0' is too little; the least is 1",
    ),
    (
        "attributes: [ { match: { kind: file }, set: { vendor: x } } ]",
        "1:47: the attribute 'vendor' is found on the host; give yours another name",
    ),
    (
        "parameters: { size: 1MiB }\nname: ${sise}",
        "2:7: ${sise}: the plan has no parameter 'sise'; did you mean 'size'?",
    ),
    (
        "parameters: { size: }\nname: x",
        "1:15: parameter 'size' has no default; give -D size=VALUE",
    ),
    (
        "parameters: { size: [1] }",
        "1:21: parameter 'size': a default is one value, not a list or mapping",
    ),
    (
        'parameters: { size: 1, b: "${size}" }',
        "1:27: parameter 'b': a default cannot refer to another parameter",
    ),
    (
        "name: ${",
        "1:7: ${ has no }; for a plain ${ write $${",
    ),
    (
        "name: a\nname: b",
        "2:1: duplicate key 'name' (first in line 1, column 1)",
    ),
    (
        "<<: { name: a }",
        "1:1: plans have no merge keys (<<); write the settings out, or alias the whole mapping",
    ),
    (
        "{ a: b }: c",
        "1:1: a key must be text; what begins with { or [ needs quotes to be text",
    ),
    (
        "name: *a",
        "1:7: not YAML: found undefined alias 'a'; text that begins with * needs quotes",
    ),
    (
        "hosts: [ lab[01-16] ]",
        "1:13: not YAML: expected ',' or ']', but got '['; inside { } and [ ], text with { } [ ] or a comma "
        "in it needs quotes",
    ),
    (
        "luns: { select: { size: >= 100GiB } }",
        "1:25: not YAML: found character '>' that cannot start any token; text that begins with this "
        "character needs quotes",
    ),
    (
        "name: a: b",
        "1:8: not YAML: mapping values are not allowed here; text with a colon and a space in it needs "
        "quotes; or the indentation is wrong",
    ),
    (
        "name: %x",
        "1:7: not YAML: found character '%' that cannot start any token; text that begins with this "
        "character needs quotes",
    ),
    (
        "steps:\n\t- go: one",
        "2:1: not YAML: found character '\\t' that cannot start any token; a tab where YAML requires "
        "spaces; indent with spaces",
    ),
    (
        "rollups: [ host",
        "2:5: not YAML: expected ',' or ']', but got ':'; a { or [ is not closed, or a comma is missing",
    ),
    (
        'name: "a',
        "1:7: not YAML: found unexpected end of stream; a quote is not closed",
    ),
    (
        "name: a\n description: b",
        "2:13: not YAML: mapping values are not allowed here; text with a colon and a space in it needs "
        "quotes; or the indentation is wrong",
    ),
    (
        "description: a #b\n---\nname: b",
        "2:1: not YAML: found another document; a plan is one document; remove the line ---",
    ),
    (
        "workloads:\n  oltp:\n    iops: 5,000",
        "3:11: iops: '5,000' is not an IOPS setting; write 5000",
    ),
    (
        "name: !secret a",
        "1:7: '!secret' is a YAML tag, which plans do not have; if it is text, put it in quotes",
    ),
    (
        "workloads: { oltp: { rwmixread: 70 } }",
        "1:22: unknown key 'rwmixread' in workload 'oltp'; here it is called 'fraction_read'",
    ),
    (
        "workloads: { oltp: { iodepth: 32 } }",
        "1:22: unknown key 'iodepth' in workload 'oltp'; here it is called 'maxtags'",
    ),
    (
        "workloads: { oltp: { xfersize: 8KiB } }",
        "1:22: unknown key 'xfersize' in workload 'oltp'; here it is called 'blocksize'",
    ),
    (
        "workloads: { oltp: { rate_iops: 500 } }",
        "1:22: unknown key 'rate_iops' in workload 'oltp'; here it is called 'iops'",
    ),
    (
        "workloads: { oltp: { maxtag: 5 } }",
        "1:22: unknown key 'maxtag' in workload 'oltp'; did you mean 'maxtags'?",
    ),
    (
        "defaults: { warmpup: 5s }",
        "1:13: unknown key 'warmpup' in defaults; did you mean 'warmup'?",
    ),
    (
        "luns: { select: { size: 200GiB..100GiB } }",
        "1:25: size: '200GiB..100GiB' runs backwards; write the smaller value first",
    ),
    (
        "luns:\n  select:\n    path: /dev/sd[b-e]",
        "3:11: path: [b-e] in '/dev/sd[b-e]' is not a range of numbers; write for example lab[01-16] or lab[1,3-5]",
    ),
    (
        "steps: [ { go: { name: l, loop: { maxtags: [1, 2] } } }, { go: { name: l, loop: { maxtags: 2 } } } ]",
        "1:72: duplicate step name 'l+maxtags=2' (first in line 1)",
    ),
    (
        "live: {}",
        "1:7: live is empty; it needs maxtags, blocksize or range",
    ),
    (
        "live: { iops: 5 }",
        "1:9: unknown key 'iops' in live; it belongs in a workload or an edit's 'set'",
    ),
    (
        "steps: [ go: { name: m, loop: { blocksize: [4KiB, 8KiB] }, rounds: { watch: { maxtags: 4 } } } ]",
        "1:79: maxtags is not in the loop of step 'm': it names no pass",
    ),
    (
        "steps: [ go: { name: m, loop: { blocksize: [4KiB, 8KiB] }, rounds: { watch: { blocksize: 1MiB } } } ]",
        "1:90: blocksize: 1MiB is not among the loop's values: 4KiB, 8KiB",
    ),
    (
        "steps: [ go: { name: m, loop: { blocksize: [4KiB, 8KiB] }, rounds: { watch: {} } } ]",
        "1:77: watch is empty; it needs values of the loop, like fraction_read: 0%",
    ),
    (
        "steps: [ go: { name: m, loop: { blocksize: [4KiB, 8KiB] }, rounds: { most: 4 } } ]",
        "1:76: most: '4' is too little; the least is 5",
    ),
    (
        "steps: [ go: { name: m, loop: { blocksize: [4KiB, 8KiB] }, rounds: { metric: array.ios_per_s } } ]",
        "1:78: metric array.ios_per_s: rounds look at figures of the run's own, not of connectors",
    ),
    (
        "steps: [ go: { name: m, loop: { blocksize: [4KiB, 8KiB] }, rounds: {}, iops_curve: [50%] } ]",
        "1:60: a round has one figure of each pass, and iops_curve makes several; leave it out",
    ),
    (
        "steps: [ go: { name: m, loop: { blocksize: [4KiB, 8KiB] }, rounds: {}, find: { metric: p99, target: 1ms } } ]",
        "1:60: a round has one figure of each pass, and find makes several; leave it out",
    ),
    (
        "steps: [ go: { name: m, rounds: {}, staircase: { start: 1, step: 2, end: 5 } } ]",
        "1:25: a round has one figure of each pass, and staircase makes several; leave it out",
    ),
    (
        "steps: [ go: { name: m, loop: { blocksize: [4KiB, 8KiB] }, rounds: yes } ]",
        "1:68: rounds is 'yes'; it needs keys, like metric, watch, most",
    ),
    (
        "steps: [ go: { name: mix, rounds: { metric: response_p99 } } ]",
        "1:45: overall_response_us_p99: in step 'mix' workload 'oltp' runs at max, where there is no "
        "response time; use overall_service_us_p99, or set iops",
    ),
    (
        "steps: [ go: mix+round=1 ]",
        "1:14: 'mix+round=1': names with +round= are those of repeated steps; choose another",
    ),
    (
        "steps: [ go: { name: m, loop: { iops: 1 }, rounds: {} }, go: { name: m, loop: { iops: 2 }, rounds: {} } ]",
        "1:70: duplicate step name 'm+iops=2' (first in line 1)",
    ),
]
