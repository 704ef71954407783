import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as z from 'zod';

const Int64 = z.string().regex(/^-?\d{1,19}$/);
const Text = z.strictObject({ stringValue: z.string() }).transform((value) => value.stringValue);
const Value = z.union([
  Text,
  z.strictObject({ intValue: Int64 }).transform((value) => Number(value.intValue)),
  z.strictObject({ doubleValue: z.number() }).transform((value) => value.doubleValue),
  z.strictObject({ boolValue: z.boolean() }).transform((value) => value.boolValue),
  z.strictObject({ arrayValue: z.strictObject({ values: z.array(Text) }) }).transform((value) => value.arrayValue.values),
]);
const Attributes = z
  .array(z.strictObject({ key: z.string().min(1), value: Value }))
  .refine((all) => new Set(all.map(({ key }) => key)).size === all.length, 'expected each key once')
  .transform((all) => Object.fromEntries(all.map(({ key, value }) => [key, value])));
const id = (bytes: number) =>
  z
    .string()
    .regex(new RegExp(`^[0-9a-f]{${bytes * 2}}$`))
    .refine((text) => !/^0+$/.test(text), 'expected an id that is not all zeros');
const UnixNanos = Int64.transform(BigInt).refine((nanos) => nanos > 1_500_000_000_000_000_000n && nanos < 4_000_000_000_000_000_000n);
const Span = z
  .strictObject({
    traceId: id(16),
    spanId: id(8),
    parentSpanId: id(8).optional(),
    flags: z.int().min(0).max(0x3ff),
    name: z.string().min(1),
    kind: z.int().min(1).max(5),
    startTimeUnixNano: UnixNanos,
    endTimeUnixNano: UnixNanos,
    attributes: Attributes,
    droppedAttributesCount: z.literal(0),
    status: z.strictObject({ code: z.int().min(0).max(2) }),
  })
  .refine((span) => span.endTimeUnixNano >= span.startTimeUnixNano, 'expected an end that is not before the start');
/** `ExportTraceServiceRequest` by the rules of OTLP for JSON; any additional field is refused. */
const Export = z.strictObject({
  resourceSpans: z
    .array(
      z.strictObject({
        resource: z.strictObject({ attributes: Attributes }),
        scopeSpans: z.array(z.strictObject({ scope: z.strictObject({ name: z.string(), version: z.string() }), spans: z.array(Span).min(1) })).min(1),
      }),
    )
    .min(1),
});
export type SentSpan = z.output<typeof Span>;

interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The request is taken and never answered. */
  readonly silent?: boolean;
}

/** A collector that stores requests, and answers as queued or with success. */
export async function startCollector() {
  const requests: { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: string }[] = [];
  const replies: Reply[] = [];
  let open = 0;
  let mostOpen = 0;
  const server = createServer((incoming, outgoing) => {
    let text = '';
    open += 1;
    mostOpen = Math.max(mostOpen, open);
    outgoing.on('close', () => (open -= 1));
    incoming.on('data', (chunk: Buffer) => (text += chunk.toString()));
    incoming.on('end', () => {
      requests.push({ path: incoming.url ?? '', headers: incoming.headers, body: text });
      const { status = 200, headers, body = '{}', silent } = replies.shift() ?? {};
      if (silent !== true) outgoing.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    host: `127.0.0.1:${port}`,
    endpoint: `http://127.0.0.1:${port}/v1/traces`,
    requests,
    queue: (...more: Reply[]) => replies.push(...more),
    /** Requests that were under way at once, at most. */
    mostOpen: () => mostOpen,
    exports: () => requests.flatMap(({ body }) => Export.parse(JSON.parse(body)).resourceSpans),
    spans(): SentSpan[] {
      return this.exports().flatMap((one) => one.scopeSpans.flatMap((scope) => scope.spans));
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
