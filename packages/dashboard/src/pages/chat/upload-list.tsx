import { t } from '../../language.ts';
import { bytes } from '../../data/format.ts';
import { Icon } from '../../ui/icon.tsx';
import { IconButton } from '../../ui/parts.tsx';
import type { Uploads } from './use-uploads.ts';

/** Lists the files of the message that is being written. */
export function UploadList({ uploads: { list, note, remove } }: { readonly uploads: Uploads }) {
  return (
    <>
      {list.length > 0 && (
        <ul className="uploads" aria-label={t('Attachments')}>
          {list.map(({ key, name, size, info, error }) => (
            <li key={key} className={error === undefined ? 'upload' : 'upload bad'}>
              <Icon name={error === undefined ? 'file' : 'warning'} />
              <span className="upload-name" dir="auto">
                {name}
              </span>
              <span className="hint">{error ?? (info === undefined ? t('uploading…') : bytes(size))}</span>
              <IconButton icon="close" label={t('Remove {name}', { name })} onClick={() => remove(key)} />
            </li>
          ))}
        </ul>
      )}
      {note !== '' && (
        <p className="hint" role="status">
          {note}
        </p>
      )}
    </>
  );
}
