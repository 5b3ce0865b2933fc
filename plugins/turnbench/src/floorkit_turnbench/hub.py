"""Datasets on the Hugging Face hub, fetched and cached by the hub's own client."""

from __future__ import annotations

from pathlib import Path

from floorkit.core.errors import InputError, Problem

OFFICIAL_DEV = "mundo-ai/turn-benchmark-dev"
LOGIN = "hf auth login"
SITE = "https://huggingface.co"


def fetch(dataset_id: str, revision: str = "") -> tuple[Path, str]:
    """Folder of the dataset's parquet files, and the revision (commit) that was used.

    Parameters
    ----------
    dataset_id
        ``OWNER/NAME`` of a dataset.
    revision
        Branch, tag or commit; the default branch where empty.

    Raises
    ------
    InputError
        One error each for: no network and nothing cached, no login, no access, no such dataset or revision.
    """
    from huggingface_hub import errors, snapshot_download

    place = f"hub dataset {dataset_id}" + (f" at {revision}" if revision else "")
    page = f"{SITE}/datasets/{dataset_id}"
    try:
        folder = snapshot_download(
            dataset_id, repo_type="dataset", revision=revision or None, allow_patterns=["*.parquet"]
        )
    except errors.GatedRepoError as error:
        raise InputError(_gated(place, page, error.response.status_code)) from error
    except errors.LocalTokenNotFoundError as error:
        raise InputError(_gated(place, page, 401)) from error
    except errors.RepositoryNotFoundError as error:
        raise InputError(
            Problem(
                "no such dataset on the hub, or a private one",
                place,
                "not found",
                "OWNER/NAME of a dataset",
                f"check the name; for a private dataset log in with `{LOGIN}`",
            )
        ) from error
    except errors.RevisionNotFoundError as error:
        raise InputError(
            Problem("no such revision", place, revision, f"one of those listed at {page}/commits/main")
        ) from error
    except errors.HFValidationError as error:
        raise InputError(Problem("no dataset id", place, dataset_id, "OWNER/NAME")) from error
    except errors.HfHubHTTPError as error:
        raise InputError(
            Problem(
                "the hub refused the request",
                place,
                str(error).splitlines()[0],
                remedy="try again later, or download the dataset and give its folder",
            )
        ) from error
    except OSError as error:
        raise InputError(
            Problem(
                "no network, and the dataset is not in the cache",
                place,
                str(error).splitlines()[0],
                "a connection to the hub on first use",
                "connect once to fill the cache, or give the path of a downloaded copy",
            )
        ) from error
    return Path(folder), Path(folder).name


def _gated(place: str, page: str, status: int) -> Problem:
    if status == 401:
        return Problem(
            "the dataset is gated and you are not logged in",
            place,
            expected="a login whose access request was granted",
            remedy=f"request access at {page}, then run `{LOGIN}`",
        )
    return Problem(
        "the dataset is gated and your account has no access",
        place,
        expected="a granted access request",
        remedy=f"request access at {page} with the account that `{LOGIN}` uses, and wait until it is granted",
    )
