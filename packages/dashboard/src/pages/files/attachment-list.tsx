import type { Attachment } from '../../data/chat-thread.ts';
import { useSession } from '../../data/context.ts';
import { DocumentText } from './document-text.tsx';
import { FileView } from './file-view.tsx';

/** The files of a message: images and audio inline, documents with their text, others to save. */
export function AttachmentList({ attachments }: { readonly attachments: readonly Attachment[] }) {
  const { client } = useSession();
  return (
    <ul className="attachments">
      {attachments.map(({ mediaId, fileName, contentType, size }) => (
        <li key={mediaId}>
          <FileView
            file={{
              key: mediaId,
              name: fileName ?? mediaId,
              contentType,
              size,
              load: async (signal) => (await client.media(mediaId, { signal })).blob(),
            }}
          >
            <DocumentText mediaId={mediaId} name={fileName ?? mediaId} contentType={contentType} />
          </FileView>
        </li>
      ))}
    </ul>
  );
}
