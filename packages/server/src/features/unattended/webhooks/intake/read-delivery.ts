import { isUtf8 } from 'node:buffer';
import { WebhookPayload } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { issuesOf, sentenceOf } from '../../../../kernel/issues.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { PresetName } from '../config.ts';
import { type Match, wantsSource } from '../rules/match.ts';
import { readPreset } from '../rules/presets.ts';
import { renderTemplate, type TemplateContext } from '../rules/template.ts';

/** The parts of a rule needed to read a delivery. */
export interface ReadingRule {
  readonly id: string;
  readonly match: Match;
  readonly preset?: PresetName | undefined;
  readonly sessionKey?: string | undefined;
  readonly messageTemplate?: string | undefined;
  readonly dedupeKey?: string | undefined;
}

/** A request whose path matches some rules. Plain data, because large ones are read in a separate thread. */
export interface DeliveryRequest {
  /** Rules that match the path, in order. */
  readonly rules: readonly ReadingRule[];
  readonly body: Uint8Array;
  /** Whether the body is a form whose field `payload` contains the JSON. */
  readonly isForm: boolean;
  /** Whether the payload must have the strict shape. */
  readonly isStrict: boolean;
  readonly context: Omit<TemplateContext, 'payload'>;
}

/** A payload as read by the first matching rule. */
export interface DeliveryReading {
  readonly ruleId: string;
  readonly sessionKey: string;
  readonly message: string;
  /** Id from the template `dedupeKey` or the preset; common headers are handled separately. */
  readonly deliveryId: string | undefined;
  readonly isPing: boolean;
}

/** Maximum length of a rendered template. */
const maxLength = 32_768;

/** Parses the body, selects the rule and renders its templates; undefined when no rule matches. Has no side effects. */
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
  const parsed = WebhookPayload().safeParse(value);
  if (parsed.success) return parsed.data;
  throw new AppError('invalid_params', sentenceOf(issuesOf(parsed.error)));
}
