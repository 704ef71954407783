import type { ModelTier } from '@gatehouse/contract';
import type { ModelInfo } from './model.ts';

/** Billions of parameters in a name, as in `llama-3.1-8b-instant`; the active ones of `8x7b` and `30b-a3b` do not count. */
const parameters = /(?:^|[-_:/])(?:(?<experts>\d+)x)?(?<billions>\d+(?:\.\d+)?)b(?=$|[-_:/.])/;
const smallNames = /(?:^|[-_/.])(?:nano|lite|tiny|ministral|smollm|phi)(?=$|[-_/.\d])/;
const midNames = /(?:^|[-_/.])(?:mini|flash|haiku|small|medium)(?=$|[-_/.\d:])/;
const frontierNames =
  /(?:^|[-_/.])(?:gpt-(?:4\.1|[5-9])|o[3-9]|claude-(?:sonnet|opus|[4-9])|gemini-[\d.]+-pro|grok-[3-9]|mistral-large|kimi-k\d|deepseek-(?:reasoner|r\d))(?=$|[-_/.:])/;
const maxSmall = 14;

/** Returns how capable a model is: as configured, otherwise by its name. A name that says nothing is `mid`. */
export function tierOf({ tier, provider, modelId }: Pick<ModelInfo, 'provider' | 'modelId' | 'tier'>): ModelTier {
  if (tier !== undefined) return tier;
  if (provider === 'offline') return 'small';
  const name = modelId.toLowerCase();
  if (smallNames.test(name)) return 'small';
  if (midNames.test(name)) return 'mid';
  const { experts = '1', billions } = parameters.exec(name)?.groups ?? {};
  if (billions !== undefined) return Number(experts) * Number(billions) <= maxSmall ? 'small' : 'mid';
  return frontierNames.test(name) ? 'frontier' : 'mid';
}
