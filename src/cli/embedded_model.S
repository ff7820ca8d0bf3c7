/* The file ASSAY_EMBEDDED_MODEL as read-only data between two symbols. */
        .section .rodata.assay_embedded_model, "a"
        .balign 64
        .globl kAssayEmbeddedModelBegin
        .hidden kAssayEmbeddedModelBegin
kAssayEmbeddedModelBegin:
        .incbin ASSAY_EMBEDDED_MODEL
        .globl kAssayEmbeddedModelEnd
        .hidden kAssayEmbeddedModelEnd
kAssayEmbeddedModelEnd:
        .byte 0

        /* Nothing here runs, so the stack need not be executable. */
        .section .note.GNU-stack, "", %progbits
