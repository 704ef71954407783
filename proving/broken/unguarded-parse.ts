import { buildIn } from './patch.ts';

/** Treats errors of the JSON parser as internal errors. */
buildIn({
  name: 'unguarded-parse',
  module: 'kernel/json.ts',
  replace: [{ from: "throw new AppError('parse_error', `The text is not valid JSON${positionIn(error)}`);", to: 'throw error;' }],
});
