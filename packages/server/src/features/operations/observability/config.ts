import * as z from 'zod';

/** Section `observability` of config.yaml. */
export const ObservabilityConfig = z.strictObject({
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
