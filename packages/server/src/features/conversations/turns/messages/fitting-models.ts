import { AppError } from '../../../../kernel/app-error.ts';
import type { ModelInfo, ModelMessage } from '../../../../llm/model.ts';
import type { Models } from '../../../../llm/models.ts';
import type { Asked } from '../../../../llm/unsupported.ts';

type MediaKind = Exclude<ModelInfo['input'][number], 'text'>;

const names: Readonly<Record<MediaKind, string>> = { image: 'images', pdf: 'PDF files' };

/** Returns the non-text media in messages. */
export function mediaIn(messages: readonly ModelMessage[]): ReadonlySet<MediaKind> {
  const media = new Set<MediaKind>();
  for (const message of messages) {
    if (message.role !== 'user') continue;
    for (const part of message.parts ?? []) if (part.type !== 'text') media.add(part.type === 'image' ? 'image' : 'pdf');
  }
  return media;
}

/** Returns the models of a turn that support the media and the requested options; throws `invalid_params` when the first one does not. */
export function fittingModels(
  candidates: readonly ModelInfo[],
  wanted: { readonly media: ReadonlySet<MediaKind>; readonly mediaParam: string; readonly asked?: Asked | undefined },
  unsupported: Models['unsupported'],
): readonly ModelInfo[] {
  const { media, mediaParam, asked } = wanted;
  // Most turns use only text.
  if (media.size === 0 && asked === undefined) return candidates;
  const [primary] = candidates;
  if (primary === undefined) return candidates;
  const missing = (model: ModelInfo) => [...media].find((kind) => !model.input.includes(kind));
  const kind = missing(primary);
  if (kind !== undefined)
    throw new AppError('invalid_params', `The model ${primary.provider}/${primary.modelId} does not take ${names[kind]}`, { param: mediaParam });
  const refused = asked === undefined ? undefined : unsupported(primary, asked);
  if (refused !== undefined) throw new AppError('invalid_params', refused.message, { param: refused.option });
  return candidates.filter(
    (model) => model === primary || (missing(model) === undefined && (asked === undefined || unsupported(model, asked) === undefined)),
  );
}
