import { buildIn } from './patch.ts';

/** config.yaml is written in place, in two parts, instead of replaced. */
buildIn({
  name: 'config-in-place',
  module: 'wiring/settings.ts',
  replace: [
    {
      from: 'writeText: (text) => replaceOwnFile(realpathSync(configuration.file), text),',
      to: `writeText(text) {
        const { writeFileSync } = process.getBuiltinModule('node:fs');
        writeFileSync(configuration.file, text.slice(0, text.length / 2));
        if (process.env['KILL_AT'] === 'before the rename') process.kill(process.pid, 'SIGKILL');
        writeFileSync(configuration.file, text);
      },`,
    },
  ],
});
