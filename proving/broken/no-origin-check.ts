import { buildIn } from './patch.ts';

/** Ignores the origin of requests. */
buildIn({
  name: 'no-origin-check',
  module: 'gateway/origin.ts',
  replace: [
    {
      from: "throw new AppError('forbidden_origin', 'The Origin of the request is not one of gateway.corsOrigins');",
      to: 'return undefined;',
    },
    { from: "throw new AppError('forbidden_origin', 'Requests made by pages of other sites are refused');", to: 'return undefined;' },
  ],
});
