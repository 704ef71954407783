import { buildIn } from './patch.ts';

/** Accepts a streamed answer of any length. */
buildIn({
  name: 'no-answer-bound',
  module: 'llm/wire/answer-bound.ts',
  replace: [{ from: 'return Math.min(Math.max(mostTokens(request) * bytesPerToken, leastBytes), request.maxAnswerBytes);', to: 'return 1e12;' }],
});
