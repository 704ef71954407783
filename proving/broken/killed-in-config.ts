import { buildIn } from './patch.ts';

/** Not a fault in the program: kills the daemon at the point of a change of config.yaml that KILL_AT names, the KILL_AFTER-th time that it is there. */
const kill = (point: string, when = 'true'): string =>
  `if (process.env['KILL_AT'] === '${point}' && ${when} && (globalThis.killCount = (globalThis.killCount ?? 0) + 1) >= Number(process.env['KILL_AFTER'] ?? 1)) process.kill(process.pid, 'SIGKILL');`;
const before = (point: string, from: string, when?: string) => ({ from, to: `${kill(point, when)} ${from}` });

const adding = 'await db.write(addConfigVersion, { version, audit: audit.row });';
buildIn({
  name: 'killed-in-config',
  module: 'features/operations/settings/versions.ts',
  replace: [
    { from: adding, to: `${kill('before the version')} ${adding} ${kill('after the version')}` },
    { from: '// The next call to settle finds', to: `${kill('after the rename')}\n    // The next call to settle finds` },
  ],
});
buildIn({
  name: 'killed-in-config',
  module: 'kernel/private-file.ts',
  replace: [
    {
      from: 'try {\n    renameSync(draft, path);',
      to: `${kill('before the rename', `path.endsWith('config.yaml')`)} try {\n    renameSync(draft, path);`,
    },
  ],
});
buildIn({
  name: 'killed-in-config',
  module: 'features/operations/settings/changes.ts',
  replace: [
    before('after the mark', 'await configuration.reload(plan.actionType);'),
    before('after the reload', 'const changed = paths.map(dotted);'),
  ],
});
