import { AppError } from '../../../../kernel/app-error.ts';
import type { ModelInfo, ModelMessage } from '../../../../llm/model.ts';
import type { Models } from '../../../../llm/models.ts';
import type { Asked } from '../../../../llm/unsupported.ts';

type Medium = Exclude<ModelInfo['input'][number], 'text'>;

const names: Readonly<Record<Medium, string>> = { image: 'images', pdf: 'PDF files' };

/** Returns the non-text media in messages. */
export function mediaIn(messages: readonly ModelMessage[]): ReadonlySet<Medium> {
  const media = new Set<Medium>();
  for (const message of messages) {
    if (message.role !== 'user') continue;
    for (const part of message.parts ?? []) if (part.type !== 'text') media.add(part.type === 'image' ? 'image' : 'pdf');
  }
  return media;
}

/** Returns the models of a turn that support the media and the requested options; throws `invalid_params` when the first one does not. */
export function fittingModels(
  candidates: readonly ModelInfo[],
  wanted: { readonly media: ReadonlySet<Medium>; readonly mediaParam: string; readonly asked?: Asked | undefined },
  unsupported: Models['unsupported'],
): readonly ModelInfo[] {
  const { media, mediaParam, asked } = wanted;
  const [primary] = candidates;
  if (primary === undefined) return candidates;
  const missing = (model: ModelInfo) => [...media].find((medium) => !model.input.includes(medium));
  const medium = missing(primary);
  if (medium !== undefined)
    throw new AppError('invalid_params', `The model ${primary.provider}/${primary.modelId} does not take ${names[medium]}`, { param: mediaParam });
  const refused = asked === undefined ? undefined : unsupported(primary, asked);
  if (refused !== undefined) throw new AppError('invalid_params', refused.message, { param: refused.option });
  return candidates.filter(
    (model) => model === primary || (missing(model) === undefined && (asked === undefined || unsupported(model, asked) === undefined)),
  );
}
