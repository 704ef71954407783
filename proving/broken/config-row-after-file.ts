import { buildIn } from './patch.ts';

/** The version of a change of config.yaml is stored after the file was written, instead of before. */
buildIn({
  name: 'config-row-after-file',
  module: 'features/operations/settings/changes.ts',
  replace: [
    {
      from: "const settled = await versions.replace(base, text, note, { row, failed: audited('failure') });",
      to: `process.getBuiltinModule('node:fs').writeFileSync(configuration.file, text);
      if (process.env['KILL_AT'] === 'before the version') process.kill(process.pid, 'SIGKILL');
      process.getBuiltinModule('node:fs').writeFileSync(configuration.file, base.text);
      const settled = await versions.replace(base, text, note, { row, failed: audited('failure') });`,
    },
  ],
});
