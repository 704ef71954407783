import * as z from 'zod';

/** Section `observability` of config.yaml. */
export const ObservabilityConfig = z.strictObject({
  persistence: z
    .strictObject({
      enabled: z.boolean().default(true).describe('Whether the steps of turns and of other work are kept, for traces and reports.'),
      retentionDays: z.int().min(1).max(365).default(30).describe('Days until they are deleted.'),
    })
    .prefault({})
    .meta({ apply: 'live' }),
  content: z
    .enum(['off', 'errors', 'full'])
    .default('errors')
    .describe(
      'What of arguments, results and answers a trace keeps in addition to digest and size: `off`: nothing; `errors`: the first 2 KiB where a step failed; `full`: of every step. Secrets are always removed.',
    )
    .meta({ apply: 'live' }),
  traces: z
    .strictObject({
      endpoint: z
        .url({ protocol: /^https?$/ })
        .refine((url) => !/^[^/]*\/\/[^/]*@/.test(url), 'expected no user name or password in the address; they belong in headers')
        .describe('Where traces are sent by OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces.'),
      headers: z
        .record(z.string(), z.string())
        .default({})
        .describe('Headers of these requests, such as an API key of the collector.')
        .meta({ secret: true }),
      sampleRatio: z.number().min(0).max(1).default(1).describe('Share of traces that is kept, 0 to 1; a caller’s own decision in traceparent wins.'),
    })
    .optional()
    .describe('Traces of requests, turns, model calls and tools, without content; off when absent.'),
});
export type TracesConfig = NonNullable<z.output<typeof ObservabilityConfig>['traces']>;
