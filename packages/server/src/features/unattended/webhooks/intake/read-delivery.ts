import { isUtf8 } from 'node:buffer';
import { WebhookPayload } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { issuesOf, sentenceOf } from '../../../../kernel/issues.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { PresetName } from '../config.ts';
import { type Match, wantsSource } from '../rules/match.ts';
import { readPreset } from '../rules/presets.ts';
import { renderTemplate, type TemplateContext } from '../rules/template.ts';

/** Of a rule, what reading a delivery needs. */
export interface ReadingRule {
  readonly id: string;
  readonly match: Match;
  readonly preset?: PresetName | undefined;
  readonly sessionKey?: string | undefined;
  readonly messageTemplate?: string | undefined;
  readonly dedupeKey?: string | undefined;
}

/** A request whose path some rules want. Plain data: large ones are read in a thread of their own. */
export interface DeliveryRequest {
  /** Those that want the path, in order. */
  readonly rules: readonly ReadingRule[];
  readonly body: Uint8Array;
  /** The body holds a form whose field `payload` is the JSON. */
  readonly isForm: boolean;
  /** Must have the strict shape. */
  readonly isStrict: boolean;
  readonly context: Omit<TemplateContext, 'payload'>;
}

/** What the first rule that wants the payload makes of it; undefined when none does. */
export interface DeliveryReading {
  readonly ruleId: string;
  readonly sessionKey: string;
  readonly message: string;
  /** From the template `dedupeKey` or the preset; headers of all senders come on top. */
  readonly deliveryId: string | undefined;
  readonly isPing: boolean;
}

/** Longest text that a template gives. */
const maxLength = 32_768;

/** Parses, picks the rule and renders; a function of its input alone. */
export function readDelivery(request: DeliveryRequest): DeliveryReading | undefined {
  const given = parseBody(request);
  const source =
    typeof given === 'object' && given !== null && !Array.isArray(given) ? Object.getOwnPropertyDescriptor(given, 'source')?.value : undefined;
  const rule = request.rules.find(({ match }) => wantsSource(match, source));
  if (rule === undefined) return undefined;
  const preset = rule.preset === undefined ? undefined : readPreset(rule.preset, given, request.context.headers);
  const context: TemplateContext = { ...request.context, payload: preset?.payload ?? given };
  const render = (template: string | undefined) => (template === undefined ? undefined : renderTemplate(template, context, maxLength));
  const deliveryId = render(rule.dedupeKey) ?? preset?.deliveryId;
  return {
    ruleId: rule.id,
    sessionKey: render(rule.sessionKey) ?? preset?.sessionKey ?? `hook:${rule.id}`,
    message: render(rule.messageTemplate) ?? (preset?.message ?? JSON.stringify(given)).slice(0, maxLength).toWellFormed(),
    deliveryId: deliveryId === '' ? undefined : deliveryId,
    isPing: preset?.isPing ?? false,
  };
}

function parseBody({ body, isForm, isStrict }: DeliveryRequest): unknown {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (!isUtf8(bytes)) throw new AppError('parse_error', 'The body is not valid UTF-8');
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  const json = isForm ? new URLSearchParams(text).get('payload') : text;
  if (json === null) throw new AppError('parse_error', 'The form has no field `payload`');
  const value = parseJson(json);
  if (!isStrict) return value;
  const parsed = WebhookPayload.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new AppError('invalid_params', sentenceOf(issuesOf(parsed.error)));
}
