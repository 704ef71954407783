import { buildIn } from './patch.ts';

/** What the JSON parser throws is taken for a fault of ours. */
buildIn({
  name: 'unguarded-parse',
  module: 'kernel/json.ts',
  replace: [{ from: "throw new AppError('parse_error', `The text is not valid JSON${positionIn(error)}`);", to: 'throw error;' }],
});
