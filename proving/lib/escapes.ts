/** What surrounds the jail, for programs that try to reach it. */
export interface Surroundings {
  /** A folder of the host with `secret`, and a listening socket `socket`. */
  readonly outside: string;
  readonly port: number;
  /** A process of the host. */
  readonly victim: number;
  readonly daemon: number;
  readonly home: string;
}

export interface Escape {
  readonly argv: readonly string[];
  readonly stdin?: string;
  /** May run without a jail: it does to its surroundings what the harness looks for, and nothing to the machine. */
  readonly harmless?: true;
}

const sh = (script: string, more: Omit<Escape, 'argv'> = {}): Escape => ({ argv: ['sh', '-c', script], ...more });
const node = (script: string, more: Omit<Escape, 'argv'> = {}): Escape => ({ argv: ['node', '-e', script], ...more });
const harmless = { harmless: true } as const;
const on = (x64: number, arm64: number) => (process.arch === 'arm64' ? arm64 : x64);
/** Name, number and arguments of system calls that a kernel grants to every process. */
const rawCalls: readonly (readonly [string, ...number[]])[] = [
  ['a socket to the hypervisor', on(41, 198), 40, 1, 0],
  ['a socket of the crypto modules', on(41, 198), 38, 5, 0],
  ['a socket of netfilter', on(41, 198), 16, 3, 12],
  ['page faults', on(323, 282), 1],
  ['a keyring', on(250, 219), 0, -3, 1],
  ['100 MB of shared memory', on(29, 194), 0, 100_000_000, 0o1600],
  ['a queue of messages', on(68, 186), 0, 0o1600],
  ['a namespace', on(272, 97), 0x10000000],
  ['notices of files', on(300, 262), 0x200, 0],
  ['the memory of its parent', on(101, 117), 16, 1, 0, 0],
];

/** Programs that reach outside, or take all that they can get. */
export function escapes({ outside, port, victim, daemon, home }: Surroundings): Readonly<Record<string, Escape>> {
  return {
    // Files.
    'reads by path': sh(`cat ${outside}/secret`, harmless),
    'reads by climbing': sh(`cat "$(printf '../%.0s' $(seq 30))${outside.slice(1)}/secret"`, harmless),
    'reads through a link': sh(`ln -sf ${outside} projects/way; cat projects/way/secret`, harmless),
    'reads through /proc/1/root': sh(`cat /proc/1/root${outside}/secret /proc/[0-9]*/root${outside}/secret /proc/[0-9]*/cwd${outside}/secret`),
    'reads the home of the daemon': sh(`cat ${home}/install.key ${home}/config.yaml ${home}/token; ls ${home}/data`, harmless),
    'writes by path': sh(`echo effect > ${outside}/effect`, harmless),
    'writes through a link': sh(`ln -sfn ${outside} data/way; echo effect > data/way/effect2`, harmless),
    'makes second names': sh(`ln ${outside}/secret projects/second; ln SOUL.md projects/soul; echo changed >> projects/soul`, harmless),
    'changes a file of the prompt': sh('echo changed > SOUL.md; mv SOUL.md projects/; rm -f SOUL.md; cp /bin/true SOUL.md', harmless),
    'adds a file to the prompt': sh('echo changed > AGENTS.md; mkdir top; mkfifo USER.md', harmless),
    'plants a skill': sh('mkdir -p skills/planted && echo planted > skills/planted/SKILL.md', harmless),
    'plants a hook of git': sh('mkdir -p .git/hooks && echo planted > .git/hooks/post-commit', harmless),
    'swaps a folder for a link': sh(`mv projects away; rmdir output; ln -s ${outside} output; ln -s ${outside} projects`),
    'writes to the system': sh('touch /usr/bin/planted /etc/planted /opt/gatehouse/bin/planted /planted; echo x > /opt/gatehouse/bin/node'),
    'overwrites the program that made the jail': node(
      `const fs=require('fs');for(const p of ['/proc/1/exe','/proc/self/exe'])try{fs.writeFileSync(p,'x')}catch(e){console.log(e.code)}`,
    ),
    // Mounts, namespaces, devices, the kernel.
    remounts: sh(
      'mount -o remount,rw /; mount -o remount,rw,bind /workspace; echo changed > /workspace/SOUL.md; umount -l /workspace; ls -la /workspace',
    ),
    'mounts the disk': sh('for d in /dev/vda /dev/sda /dev/nvme0n1; do mount $d /tmp && ls /tmp; done; cat /proc/partitions'),
    'makes a device': sh('mknod /tmp/disk b 254 0 && head -c 100 /tmp/disk; mknod projects/memory c 1 1 && head -c 100 projects/memory'),
    'creates a namespace': sh(`unshare -Urm sh -c 'mount --bind / /tmp; echo changed > /workspace/SOUL.md'; unshare -n true`),
    'enters another namespace': sh(`nsenter -t 1 -a sh -c 'echo effect > ${outside}/effect3'; nsenter -t ${daemon} -m true`),
    'leaves by chroot': node(`try{process.chdir('/proc/1/root')}catch(e){console.log(e.code)};console.log(require('fs').readdirSync('.').join())`),
    'sets the handler of crashes': sh(`echo "|/bin/sh -c 'echo effect > ${outside}/effect4'" > /proc/sys/kernel/core_pattern; kill -SEGV $$`),
    'sets what the kernel starts': sh(
      'echo /planted > /proc/sys/kernel/modprobe; echo /planted > /proc/sys/kernel/hotplug; echo h > /proc/sysrq-trigger',
    ),
    'uses control groups': sh(
      'mkdir /tmp/cg; mount -t cgroup -o memory x /tmp/cg; mount -t cgroup2 x /tmp/cg; echo /planted > /sys/fs/cgroup/release_agent; ls /sys',
    ),
    'reads memory of the kernel': sh('head -c 100 /proc/kcore; head -c 100 /dev/mem; head -c 100 /proc/kmsg; dmesg | head'),
    'raises its privileges': sh(`cp /bin/sh data/sh; chmod 6755 data/sh; data/sh -p -c 'id; cat ${outside}/secret'; su -c id; sudo -n id`),
    'calls what no namespace covers': {
      argv: ['perl', '-e', rawCalls.map(([name, ...numbers]) => `print "GIVEN: ${name}\\n" if syscall(${numbers.join(',')}) >= 0;`).join(' ')],
    },
    'calls by other tables': {
      argv: [
        'perl',
        '-e',
        `print "GIVEN: x32\\n" if syscall(0x40000027) > 0; print "GIVEN: a namespace by clone3\\n" if syscall(435,0,0) >= 0 or $!{EFAULT} or $!{EINVAL};`,
      ],
    },
    // Processes.
    'ends another process': sh(`kill -9 ${victim}`, harmless),
    'ends all it can': sh(`kill -9 ${victim} ${daemon}; kill -9 -1`),
    'looks into another process': sh(`cat /proc/${victim}/environ /proc/${daemon}/environ /proc/${daemon}/cmdline | tr '\\0' '\\n'`, harmless),
    'looks for secrets in its environment': sh(`env; for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done; ls -l /proc/self/fd`),
    'reads what was left open': node(
      `const fs=require('fs');for(let n=3;n<64;n++)try{console.log(n,fs.readlinkSync('/proc/self/fd/'+n),fs.readSync(n,Buffer.alloc(99)))}catch{}`,
    ),
    'types into the terminal': node(
      `try{require('fs').writeFileSync('/dev/tty','kill')}catch(e){console.log(e.code)};require('fs').readdirSync('/dev/pts').map(console.log)`,
    ),
    // Network.
    'connects to this machine': node(`require('net').connect(${port},'127.0.0.1').on('error',(e)=>console.log(e.code))`, harmless),
    'connects by other addresses': node(
      `for(const h of ['::1','::ffff:127.0.0.1','0.0.0.0','localhost'])require('net').connect(${port},h).on('error',(e)=>console.log(e.code))`,
      harmless,
    ),
    'connects to a socket file': node(
      `for(const p of ['${outside}/socket','${home}/gatehouse.sock','\\0gatehouse-proof-${port}'])try{require('net').connect(p).on('error',(e)=>console.log(e.code))}catch{}`,
      harmless,
    ),
    // Exhaustion.
    'forks without end': sh('bomb() { bomb | bomb & }; bomb; while :; do sleep 1; done'),
    'starts threads without end': node(
      `const {Worker}=require('worker_threads');for(let n=0;n<500;n++)new Worker('setInterval(()=>{},9)',{eval:true}).on('error',()=>{})`,
    ),
    'takes all memory': node('const held=[];for(;;)held.push(Buffer.alloc(1e7,1))'),
    'takes all memory by many': sh('for n in $(seq 40); do (head -c 500m /dev/zero | tail -c 400m | sleep 60) & done; wait'),
    'fills what is in memory': sh('for d in /tmp /dev/shm ~ /dev /run; do for n in 1 2 3 4 5 6 7 8; do head -c 1g /dev/zero > $d/$n; done; done'),
    'writes a file without end': sh('exec head -c 100g /dev/zero > data/endless'),
    'writes output without end': { argv: ['yes', 'x'.repeat(8000)] },
    'writes errors without end': sh('exec yes >&2'),
    'holds on to its output': sh('(setsid sh -c "trap \\"\\" TERM HUP INT; while :; do sleep 1; done" &); exec sleep 100'),
    'leaves something behind': sh(
      `(setsid sh -c 'sleep 1; echo effect > ${outside}/effect5; sleep 300' > /dev/null 2>&1 < /dev/null &); (setsid setsid sleep 301 &); true`,
    ),
    'stops itself': sh('trap "" TERM INT HUP; kill -STOP $$'),
    'opens files without end': node(
      `const fs=require('fs');const all=[];try{for(;;)all.push(fs.openSync('/dev/null'))}catch(e){console.log(all.length,e.code)};setInterval(()=>{},9)`,
    ),
    'burns time': sh('for n in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait'),
  };
}
