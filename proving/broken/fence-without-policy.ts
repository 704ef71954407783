import { buildIn } from './patch.ts';

/** Text from outside is fenced, and the model is trusted to keep to that: every call is free. */
buildIn({
  name: 'fence-without-policy',
  module: 'runtime/tool-gate.ts',
  replace: [{ from: 'const mustAsk = tool.mustAsk?.(args);', to: 'return undefined; const mustAsk = tool.mustAsk?.(args);' }],
});
