import { buildIn } from './patch.ts';

/** Runs commands next to the daemon: permission, environment and folder are checked, but nothing confines them. */
buildIn({
  name: 'no-jail',
  module: 'kernel/jail.ts',
  replace: [
    {
      from: `[
      '-c',
      jailScript(cgroups?.joining(spec.limits)),
      'jail',
      bubblewrap,
      '--args',
      String(pipes.options),
      '--',
      prlimit,
      ...limits,
      '--',
      ...spec.argv,
    ],`,
      to: "['-c', 'exec \"$@\"', 'open', ...spec.argv],",
    },
    { from: "cwd: '/',\n      env: {", to: "cwd: spec.mounts[0]?.from ?? '/',\n      env: { ...spec.env," },
    { from: "PATH: '/usr/bin:/bin', [daemonVariable]", to: '[daemonVariable]' },
  ],
});
