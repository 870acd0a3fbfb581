"""What the generated catalogue is made of: kinds of things in departments, our own."""

from __future__ import annotations

from jerp.domains.webshop.kinds import Department, Kind

__all__ = ["DEPARTMENTS"]

DEPARTMENTS = (
    Department(
        "kitchen",
        "Home › Kitchen",
        "dishwasher safe, easy to clean, free of plastic, stackable, scratch resistant",
        (
            Kind(
                *("electric kettle", 18, 90, "tea and coffee"),
                "cordless, quick to boil, with a whistle, with a temperature display",
                "color capacity plug",
            ),
            Kind(
                *("frying pan", 15, 120, "eggs and pancakes"),
                "nonstick, fit for induction, with a glass lid, forged by hand",
                "size pack",
            ),
            Kind(
                *("chopping board", 8, 60, "bread and vegetables"),
                "with a juice groove, kind to knives, with rubber feet, reversible",
                "size material",
            ),
            Kind(
                *("storage jar", 5, 40, "flour, rice and beans"),
                "airtight, with a wooden lid, with a window, labelled",
                "capacity pack",
            ),
            Kind(
                *("kitchen apron", 9, 45, "cooks who spill"),
                "with two pockets, adjustable at the neck, machine washable, lined",
                "color pattern material",
            ),
        ),
    ),
    Department(
        "garden",
        "Garden › Tools and Plants",
        "frost resistant, made of recycled material, rust free, weatherproof, "
        "with a lifetime warranty",
        (
            Kind(
                *("watering can", 10, 55, "thirsty balconies"),
                "with a long spout, drip free, with two handles, with a brass rose",
                "color capacity",
            ),
            Kind(
                *("plant pot", 4, 70, "herbs and small trees"),
                "with a saucer, self watering, hand painted, with drainage holes",
                "color size pack",
            ),
            Kind(
                *("garden hose", 15, 95, "lawns and flower beds"),
                "kink free, expandable, with a spray nozzle, tested for drinking water",
                "length color",
            ),
            Kind(
                *("pruning shears", 12, 75, "roses and hedges"),
                "for left hands, with a safety lock, with a spare blade, razor sharp",
                "size color",
            ),
            Kind(
                *("bird feeder", 9, 60, "sparrows and finches"),
                "squirrel proof, with a roof, hanging, easy to refill",
                "color pack",
            ),
        ),
    ),
    Department(
        "office",
        "Office › Desk and Paper",
        "carbon neutral, made to last, refillable, space saving, with a gift box",
        (
            Kind(
                *("notebook", 3, 30, "lists and sketches"),
                "bleed proof, lay flat, with numbered pages, with a ribbon",
                "color pattern pack",
            ),
            Kind(
                *("desk lamp", 19, 140, "late hours"),
                "dimmable, with a clamp, flicker free, with a usb socket",
                "color plug",
            ),
            Kind(
                *("office chair", 80, 480, "long days"),
                "height adjustable, with lumbar support, with armrests, on wheels",
                "color firmness",
            ),
            Kind(
                *("fountain pen", 12, 190, "letters and signatures"),
                "smudge free, with a gold nib, with a converter, light in the hand",
                "color pack",
            ),
            Kind(
                *("filing box", 6, 50, "bills and contracts"),
                "lockable, fire resistant, with dividers, with a carrying handle",
                "color pack size",
            ),
        ),
    ),
    Department(
        "sport",
        "Sport › Outdoors",
        "breathable, quick drying, reflective, sweat resistant, ultralight",
        (
            Kind(
                *("running shoe", 45, 220, "trails and streets"),
                "cushioned, with a wide toe box, seamless, with a rock plate",
                "shoe-size color",
            ),
            Kind(
                *("yoga mat", 15, 110, "sun salutations"),
                "extra thick, non slip, with a carrying strap, with position lines",
                "color length",
            ),
            Kind(
                *("drinking bottle", 9, 48, "rides and hikes"),
                "leak proof, double walled, with a straw, one hand operable",
                "color capacity",
            ),
            Kind(
                *("rain jacket", 35, 340, "wet autumns"),
                "windproof, with taped seams, with a stowable hood, packable",
                "size color",
            ),
            Kind(
                *("cycling glove", 10, 65, "long descents"),
                "padded, touchscreen compatible, fingerless, with a towel thumb",
                "size color pattern",
            ),
        ),
    ),
    Department(
        "bedroom",
        "Home › Bedroom",
        "allergy friendly, machine washable at 60 degrees, odourless, "
        "tested for harmful substances, wrinkle free",
        (
            Kind(
                *("throw blanket", 18, 130, "sofas and cold feet"),
                "weighted, with a fringe, knitted, reversible in two tones",
                "color material size",
            ),
            Kind(
                *("bed pillow", 12, 120, "side sleepers"),
                "cooling, filled with down, adjustable in height, with a zip cover",
                "firmness pack",
            ),
            Kind(
                *("bed sheet", 14, 160, "wide mattresses"),
                "with deep corners, satin woven, with an elastic edge, organic",
                "color size material",
            ),
            Kind(
                *("alarm clock", 9, 85, "deep sleepers"),
                "silent at night, with a sunrise light, with a snooze bar, radio led",
                "color plug",
            ),
            Kind(
                *("window curtain", 16, 150, "light streets"),
                "blackout, sound absorbing, with eyelets, heat insulating",
                "color length pattern",
            ),
        ),
    ),
    Department(
        "travel",
        "Luggage › Travel",
        "approved for cabins, foldable, shockproof, water repellent, with a name tag",
        (
            Kind(
                *("suitcase", 40, 420, "weeks away"),
                "with four wheels, with a number lock, expandable, hard shelled",
                "size color",
            ),
            Kind(
                *("backpack", 25, 260, "day trips and commutes"),
                "with a laptop sleeve, with a rain cover, with a chest strap, slim",
                "color size",
            ),
            Kind(
                *("neck pillow", 9, 55, "night trains"),
                "inflatable, with a snap closure, filled with memory foam, with a hood",
                "color firmness",
            ),
            Kind(
                *("toiletry bag", 8, 70, "brushes and bottles"),
                "with a hook, transparent, with many compartments, spill resistant",
                "color pattern size",
            ),
            Kind(
                *("umbrella", 8, 95, "sudden showers"),
                "storm tested, opening by itself, with a wooden handle, for two",
                "color pattern length",
            ),
        ),
    ),
    Department(
        "electronics",
        "Electronics › Accessories",
        "energy saving, fast charging, halogen free, plug and play, repairable",
        (
            Kind(
                *("headphones", 25, 390, "music on the way"),
                "noise cancelling, over the ear, with a long cable, with a microphone",
                "color size",
            ),
            Kind(
                *("phone case", 6, 55, "butterfingers"),
                "drop tested, with a card slot, magnetic, slim in the pocket",
                "color pattern material",
            ),
            Kind(
                *("charging cable", 4, 35, "empty batteries"),
                "braided, tangle free, angled, with a data line",
                "length color pack",
            ),
            Kind(
                *("portable speaker", 20, 290, "picnics and kitchens"),
                "floating, stereo pairable, with a strap, with deep bass",
                "color size plug",
            ),
            Kind(
                *("power bank", 15, 130, "days without sockets"),
                "solar powered, with three outputs, with a flashlight, with a gauge",
                "color pack",
            ),
        ),
    ),
    Department(
        "pets",
        "Pets › Cats and Dogs",
        "chew resistant, gentle on paws, hair repellent, non toxic, with a bell",
        (
            Kind(
                *("dog bed", 20, 180, "tired dogs"),
                "orthopaedic, with a raised rim, with a removable cover, heated",
                "size color firmness",
            ),
            Kind(
                *("cat toy", 3, 35, "bored hunters"),
                "with catnip, rolling by itself, with feathers, crinkling",
                "color pack",
            ),
            Kind(
                *("dog leash", 7, 60, "walks at dusk"),
                "retractable, with a padded handle, with a carabiner, hands free",
                "length color",
            ),
            Kind(
                *("feeding bowl", 5, 48, "greedy eaters"),
                "slowing down, with a rubber base, raised, for two portions",
                "capacity color material",
            ),
            Kind(
                *("scratching post", 18, 160, "sharp claws"),
                "wrapped in sisal, with a cave, wall mounted, with a platform",
                "size color",
            ),
        ),
    ),
)
