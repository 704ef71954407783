import { buildIn } from './patch.ts';

/** A streamed answer is taken however long it is. */
buildIn({
  name: 'no-answer-bound',
  module: 'llm/wire/answer-bound.ts',
  replace: [{ from: 'return Math.min(Math.max(mostTokens(request) * bytesPerToken, leastBytes), request.maxAnswerBytes);', to: 'return 1e12;' }],
});
