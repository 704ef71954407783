import { buildIn } from './patch.ts';

/** Fences untrusted text and trusts the model to respect that: every call is free. */
buildIn({
  name: 'fence-without-policy',
  module: 'runtime/tool-gate.ts',
  replace: [{ from: 'const mustAsk = tool.mustAsk?.(args);', to: 'return undefined; const mustAsk = tool.mustAsk?.(args);' }],
});
