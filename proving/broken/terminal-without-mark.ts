import { buildIn } from './patch.ts';

/** Waits for a pattern on the whole session: the prompt before an input is taken for the answer to it. */
buildIn({
  name: 'terminal-without-mark',
  module: 'features/environment/shell/terminal/session.ts',
  replace: [{ from: 'const isApplication = await this.#screen.mark();\n    this.#hasOutput = false;', to: 'const isApplication = false;' }],
});
