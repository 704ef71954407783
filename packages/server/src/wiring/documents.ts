import { createDocuments } from '../features/environment/documents/documents.ts';
import type { MediaLibrary } from '../features/environment/media/api.ts';
import { isInternal } from '../features/environment/workspace/taint/internal-names.ts';
import { createEgress } from '../kernel/egress.ts';
import type { PictureReader } from '../features/environment/documents/api.ts';
import type { Assembly } from './assembly.ts';
import type { Late } from './late.ts';
import type { Tooling } from './tooling.ts';

export interface DocumentsWiring {
  readonly media: MediaLibrary;
  readonly pictures: Late<PictureReader>;
  readonly workspace: Pick<Tooling['workspace'], 'taints'>;
}

/** Wires the text of documents. */
export function wireDocuments({ options, live, clock }: Assembly, { media, workspace, pictures }: DocumentsWiring) {
  return createDocuments({
    clock,
    config: live(({ documents }) => documents),
    media,
    egress: createEgress({ clock, ...options.overrides?.egress, allowHosts: [] }),
    taints: workspace.taints,
    isInternal,
    pictures: { canRead: (call) => pictures.value.canRead(call), read: (...asked) => pictures.value.read(...asked) },
  });
}
