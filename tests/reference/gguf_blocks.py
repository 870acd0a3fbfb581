"""Blocks of GGUF's K quantisations, element by element; imports nothing of jerp.

256 elements a block. Scales are 16-bit floats; parts of a block have scales of their
own, 6 or 8 bits each.
"""

import numpy as np

BYTES = {"Q4_K": 144, "Q5_K": 176, "Q6_K": 210}


def half(data, at):
    return float(np.array(data[at : at + 2], np.uint8).view(np.float16)[0])


def scale_and_minimum(packed, part):
    """Of one of eight parts: 6 bits each, the upper four's high bits kept apart."""
    if part < 4:
        return packed[part] & 63, packed[part + 4] & 63
    low = packed[part + 4]
    high_scale, high_minimum = packed[part - 4] >> 6, packed[part] >> 6
    return (low & 15) + 16 * high_scale, (low >> 4) + 16 * high_minimum


def decode_4_or_5(data, *, five):
    """`d scale q - m minimum` in parts of 32, two of which share their bytes."""
    packed, out = data[4:16], []
    high, quants = (data[16:48], data[48:]) if five else (None, data[16:])
    for part in range(8):
        scale, minimum = scale_and_minimum(packed, part)
        for i in range(32):
            byte = quants[32 * (part // 2) + i]
            q = byte & 15 if part % 2 == 0 else byte >> 4
            if high is not None:
                q += 16 * ((high[i] >> part) & 1)
            out.append(half(data, 0) * scale * q - half(data, 2) * minimum)
    return out


def decode_6(data):
    """`d scale (q - 32)` in parts of 16; two bits of each q lie apart."""
    out = []
    for i in range(256):
        side, place = divmod(i, 128)
        quarter, offset = divmod(place, 32)
        byte = data[64 * side + 32 * (quarter % 2) + offset]
        low = byte & 15 if quarter < 2 else byte >> 4
        top = (data[128 + 32 * side + offset] >> (2 * quarter)) & 3
        scale = int(np.array(data[192 + i // 16], np.uint8).view(np.int8))
        out.append(half(data, 208) * scale * (low + 16 * top - 32))
    return out


def decode(kind, data):
    """256 floats of one block."""
    data = [int(byte) for byte in data]
    if kind == "Q6_K":
        return decode_6(data)
    return decode_4_or_5(data, five=kind == "Q5_K")


def blocks(kind, count):
    """`count` blocks of bytes by a formula, with scales near 0.01."""
    n = np.arange(count * BYTES[kind])
    out = ((n * n * 31 + n * 17) // 7 % 256).astype(np.uint8).reshape(count, -1)
    scale = np.array([0.011, 0.007], np.float16).view(np.uint8)
    if kind == "Q6_K":
        out[:, 208:] = scale[:2]
    else:
        out[:, :4] = scale
    return out
