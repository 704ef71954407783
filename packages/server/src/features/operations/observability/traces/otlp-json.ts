import { type Attributes, type AttributeValue, type HrTime, TraceFlags } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';

/** Bits of `Span.flags` in addition to those of W3C: whether the parent is remote is known, and it is. */
const remoteIsKnown = 0x100;
const parentIsRemote = 0x200;

/**
 * Formats `ExportTraceServiceRequest` as JSON (OTLP 1.x): ids in hexadecimal, 64-bit integers as decimal strings. The spans have one
 * resource and one tracer; events, links and the text of a status are not sent, since no span here has any.
 */
export function otlpRequest(spans: readonly [ReadableSpan, ...ReadableSpan[]]) {
  const [{ resource, instrumentationScope: scope }] = spans;
  return {
    resourceSpans: [
      {
        resource: { attributes: keyValues(resource.attributes) },
        scopeSpans: [{ scope: { name: scope.name, version: scope.version }, spans: spans.map(otlpSpan) }],
      },
    ],
  };
}

function otlpSpan(span: ReadableSpan) {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const parent = span.parentSpanContext;
  return {
    traceId,
    spanId,
    ...(parent !== undefined && { parentSpanId: parent.spanId }),
    flags: (traceFlags & TraceFlags.SAMPLED) | remoteIsKnown | (parent?.isRemote === true ? parentIsRemote : 0),
    name: span.name,
    // The wire begins to count at "unspecified".
    kind: span.kind + 1,
    startTimeUnixNano: unixNanos(span.startTime),
    endTimeUnixNano: unixNanos(span.endTime),
    attributes: keyValues(span.attributes),
    droppedAttributesCount: span.droppedAttributesCount,
    status: { code: span.status.code },
  };
}

function unixNanos([seconds, nanos]: HrTime): string {
  return String(BigInt(seconds) * 1_000_000_000n + BigInt(nanos));
}

function keyValues(attributes: Attributes) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}

/** Attribute types used here: texts, flags, numbers and lists of them. Anything else becomes a key without a value. */
function anyValue(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return Array.isArray(value) ? { arrayValue: { values: value.map(anyValue) } } : {};
}
